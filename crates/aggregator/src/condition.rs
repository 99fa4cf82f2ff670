//! The condition `Available` of an APIService.
//!
//! In: what was found out. Out: the condition in kube-aggregator's words, written where it is another than
//! before. Never: a write that changes nothing.
//!
//! Source: kube-aggregator v0.36.3 `controllers/status/{remote,local}`.

use std::borrow::Cow;
use std::sync::Arc;

use forebay_api::Body;
use forebay_apimachinery::options::UpdateOptions;
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::{Served, Target};
use forebay_registry::Registry;
use serde_json::{Value, json};

/// What is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub status: Cow<'static, str>,
    pub reason: Cow<'static, str>,
    pub message: String,
}

/// What became of writing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It says that already.
    Same,
    /// - `was_available`: what it said before.
    Other { was_available: bool },
    /// There is no such APIService any more, or it is another one.
    Gone,
}

impl Condition {
    pub fn passed() -> Condition {
        let (status, reason) = ("True".into(), "Passed".into());
        Condition { status, reason, message: "all checks passed".to_owned() }
    }

    /// Nobody else serves it.
    pub fn local() -> Condition {
        let (status, reason) = ("True".into(), "Local".into());
        Condition { status, reason, message: "Local APIServices are always available".to_owned() }
    }

    pub fn failed(reason: &'static str, message: String) -> Condition {
        Condition { status: "False".into(), reason: reason.into(), message }
    }

    /// It cannot be said.
    pub fn unknown(reason: &'static str, message: String) -> Condition {
        Condition { status: "Unknown".into(), reason: reason.into(), message }
    }

    pub fn is_available(&self) -> bool {
        self.status == "True"
    }

    /// What an APIService says now.
    pub fn of(value: &Value) -> Option<Condition> {
        let mut all = value["status"]["conditions"].as_array()?.iter();
        // Once: for a look.
        let found = all.find(|condition| condition["type"] == "Available")?;
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        let (status, reason) = (text("status").into(), text("reason").into());
        Some(Condition { status, reason, message: text("message") })
    }

    /// Has the APIService `name` say this.
    ///
    /// - `uid`: of the one that was looked at.
    ///
    /// # Errors
    /// It was not written; another time it may be.
    pub async fn write(
        &self,
        registry: &Registry,
        served: &Arc<Served>,
        name: &str,
        uid: &str,
    ) -> Result<Written, Status> {
        let target = Target::of_server(served.clone(), None, Some(name.to_owned()));
        let mut value = match registry.get(&target, "").await {
            Ok(object) => served.to_value(&object)?,
            Err(status) if status.reason == Reason::NotFound => return Ok(Written::Gone),
            Err(status) => return Err(status),
        };
        // By now it may be served by somebody else, or by nobody else.
        let is_local = value["spec"]["service"].is_null();
        if value["metadata"]["uid"] != uid || is_local != (*self == Condition::local()) {
            return Ok(Written::Gone);
        }
        let before = Condition::of(&value);
        if before.as_ref() == Some(self) {
            return Ok(Written::Same);
        }
        let was_available = before.as_ref().is_some_and(Condition::is_available);
        self.set(&mut value, &registry.now_rfc3339());
        let target = Target { subresource: Some("status".to_owned()), ..target };
        let options =
            UpdateOptions { field_manager: "kube-apiserver".to_owned(), ..UpdateOptions::default() };
        registry.update(&target, &Body::Value(value), &options).await?;
        Ok(Written::Other { was_available })
    }

    /// When it last changed is kept while its status is the same.
    fn set(&self, value: &mut Value, now: &str) {
        let mut own = json!({
            "type": "Available", "status": self.status, "reason": self.reason, "message": self.message,
            "lastTransitionTime": now,
        });
        let Some(all) = value["status"]["conditions"].as_array_mut() else {
            value["status"]["conditions"] = json!([own]);
            return;
        };
        match all.iter_mut().find(|condition| condition["type"] == "Available") {
            Some(before) => {
                if before["status"] == own["status"] {
                    own["lastTransitionTime"] = before["lastTransitionTime"].take();
                }
                *before = own;
            }
            None => all.push(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_remembers_since_when_it_has_been_so() {
        let mut value = json!({});
        let failed = |why: &str| Condition::failed("FailedDiscoveryCheck", why.to_owned());
        failed("a").set(&mut value, "1");
        failed("b").set(&mut value, "2");
        let all = value["status"]["conditions"].clone();
        assert_eq!(all.as_array().map(Vec::len), Some(1));
        assert_eq!((&all[0]["lastTransitionTime"], &all[0]["message"]), (&"1".into(), &"b".into()));
        Condition::passed().set(&mut value, "3");
        assert_eq!(value["status"]["conditions"][0]["lastTransitionTime"], "3");
        assert_eq!(Condition::of(&value), Some(Condition::passed()));
    }
}
