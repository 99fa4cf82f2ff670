//! The one pair of built-in kinds that are stored as another: `events.k8s.io/v1` Event is stored as core Event.
//!
//! Pure renames of top-level members; the values are the same. Custom resources convert by `apiVersion` alone.

use serde_json::Value;

// (core, events.k8s.io)
const MEMBERS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Makes an `events.k8s.io/v1` Event of a core one.
pub fn event_from_stored(event: &mut Value) {
    rename(event, MEMBERS.iter().copied());
    event["apiVersion"] = Value::from("events.k8s.io/v1");
}

/// Makes a core Event of an `events.k8s.io/v1` one.
pub fn event_to_stored(event: &mut Value) {
    rename(event, MEMBERS.iter().map(|(core, events)| (*events, *core)));
    event["apiVersion"] = Value::from("v1");
}

/// The stored path of an `events.k8s.io/v1` Event's path.
pub fn event_path_to_stored(path: &str) -> String {
    let (head, rest) = path.split_once('.').map_or((path, ""), |(head, rest)| (head, rest));
    let stored = MEMBERS.iter().find(|(_, events)| *events == head).map_or(head, |(core, _)| core);
    if rest.is_empty() { stored.to_string() } else { format!("{stored}.{rest}") }
}

fn rename<'a>(object: &mut Value, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(members) = object.as_object_mut() else { return };
    for (from, to) in pairs {
        if let Some(value) = members.remove(from) {
            members.insert(to.to_string(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_survives_the_way_there_and_back() {
        let core = json!({ "apiVersion": "v1", "kind": "Event", "involvedObject": { "name": "a" }, "message": "m",
            "count": 3, "reportingComponent": "c", "type": "Normal" });
        let mut event = core.clone();
        event_from_stored(&mut event);
        assert_eq!((&event["regarding"]["name"], &event["note"]), (&json!("a"), &json!("m")));
        assert!(event.get("message").is_none());
        event_to_stored(&mut event);
        assert_eq!(event, core);
        assert_eq!(event_path_to_stored("regarding.name"), "involvedObject.name");
        assert_eq!(event_path_to_stored("reason"), "reason");
    }
}
