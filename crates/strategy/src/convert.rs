//! The built-in kinds that are stored as another version: how the one is made of the other.
//!
//! In: an object of the served kind, or of the stored one. Out: the other. Never: a custom resource, which
//! converts by `apiVersion` alone.

use forebay_schema::builtin::{Conversion, Judged, StoredAs};
use serde_json::Value;

use super::autoscaling::{autoscaler_to_v1, autoscaler_to_v2};

static EVENTS: Conversion = Conversion {
    to_stored: event_to_stored,
    from_stored: event_from_stored,
    path_to_stored: event_path_to_stored,
    judged: Judged::Served,
};

static AUTOSCALERS: Conversion = Conversion {
    to_stored: autoscaler_to_v2,
    from_stored: autoscaler_to_v1,
    path_to_stored: str::to_string,
    judged: Judged::Stored,
};

/// How objects become what `stored` says, and back; none of a kind that has not got any.
pub fn of(stored: &StoredAs) -> Option<&'static Conversion> {
    match (stored.group, stored.kind) {
        ("events.k8s.io", "Event") => Some(&EVENTS),
        ("autoscaling", "HorizontalPodAutoscaler") => Some(&AUTOSCALERS),
        _ => None,
    }
}

// (core, events.k8s.io)
const EVENT_MEMBERS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Makes an `events.k8s.io/v1` Event of a core one: members have other names, and the same values.
fn event_from_stored(event: &mut Value) {
    rename(event, EVENT_MEMBERS.iter().copied());
    event["apiVersion"] = Value::from("events.k8s.io/v1");
}

/// Makes a core Event of an `events.k8s.io/v1` one.
fn event_to_stored(event: &mut Value) {
    rename(event, EVENT_MEMBERS.iter().map(|(core, events)| (*events, *core)));
    event["apiVersion"] = Value::from("v1");
}

fn event_path_to_stored(path: &str) -> String {
    let (head, rest) = path.split_once('.').map_or((path, ""), |(head, rest)| (head, rest));
    let stored = EVENT_MEMBERS.iter().find(|(_, events)| *events == head).map_or(head, |(core, _)| core);
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

    #[test]
    fn what_is_stored_as_another_version_has_a_conversion() {
        for stored in &forebay_schema::builtin::STORED_AS {
            assert!(of(stored).is_some(), "{stored:?}");
        }
    }
}
