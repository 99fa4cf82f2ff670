//! Whether a FlowSchema leads anywhere, as its status says it.
//!
//! In: a schema, and whether its level exists. Out: the object with the condition `Dangling`. Never: writes
//! it to a store.

use std::sync::Arc;

use serde_json::{Value, json};

/// Whether a schema names a level that is not there: its condition `Dangling`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub schema: Arc<str>,
    pub level: Arc<str>,
    pub dangling: bool,
}

impl Condition {
    /// The object with that condition, which has been so since `now` unless it was before; nothing if it has
    /// it.
    pub fn on(&self, object: &Value, now: &str) -> Option<Value> {
        let (status, reason, end) = match self.dangling {
            true => ("True", "NotFound", "but there is no such object"),
            false => ("False", "Found", "and it exists"),
        };
        let level = &self.level;
        let message =
            format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {end}");
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        // Few: a schema has one condition.
        let at = conditions.iter().position(|known| known["type"] == "Dangling");
        let known = at.map(|at| conditions.remove(at)).unwrap_or_default();
        if known["status"] == status && known["reason"] == reason && known["message"] == message.as_str() {
            return None;
        }
        let since =
            if known["status"] == status { known["lastTransitionTime"].clone() } else { Value::from(now) };
        conditions.push(json!({
            "type": "Dangling", "status": status, "lastTransitionTime": since, "reason": reason, "message": message,
        }));
        let mut object = object.clone();
        object["status"]["conditions"] = conditions.into();
        Some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_when_it_is_not_there_and_keeps_its_time() {
        let condition = |dangling| Condition { schema: "s".into(), level: "l".into(), dangling };
        let bare = json!({ "metadata": { "name": "s" } });
        let dangling = condition(true).on(&bare, "t1").expect("it is not there");
        let told = &dangling["status"]["conditions"][0];
        assert_eq!((&told["status"], &told["lastTransitionTime"]), (&json!("True"), &json!("t1")));
        assert_eq!(condition(true).on(&dangling, "t2"), None);
        let found = condition(false).on(&dangling, "t3").expect("it has changed");
        let told = &found["status"]["conditions"];
        assert_eq!(told.as_array().map(Vec::len), Some(1));
        assert_eq!((&told[0]["reason"], &told[0]["lastTransitionTime"]), (&json!("Found"), &json!("t3")));
        let elsewhere = Condition { level: "m".into(), ..condition(false) };
        let moved = elsewhere.on(&found, "t4").expect("its message has changed");
        assert_eq!(moved["status"]["conditions"][0]["lastTransitionTime"], "t3");
    }
}
