//! What a server has noted, comparable: by request, without times and what a server chooses.
//!
//! In: the lines of a log. Out: the events of each request of a script, in their order. Never: a difference
//! of what a client has asked for.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::normal::{Chosen, normal};
use crate::pair::Answer;

/// How the ids of the script's requests begin.
pub const ID: &str = "script-";

/// Annotations that only a slow server makes.
const LATENCY: &str = "apiserver.latency.k8s.io/";

/// The events of a log, by the id of their request.
pub fn told(log: &str) -> BTreeMap<String, Vec<Value>> {
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in log.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let id = event["auditID"].as_str().unwrap_or_default();
        if id.starts_with(ID) {
            all.entry(id.to_owned()).or_default().push(comparable(event));
        }
    }
    all
}

fn comparable(mut event: Value) -> Value {
    if let Some(members) = event.as_object_mut() {
        members.retain(|name, _| {
            !matches!(name.as_str(), "requestReceivedTimestamp" | "stageTimestamp" | "auditID")
        });
        if let Some(Value::Object(annotations)) = members.get_mut("annotations") {
            annotations.retain(|key, _| !key.starts_with(LATENCY));
        }
    }
    let answer = Answer { code: 0, warnings: Vec::new(), body: event };
    let mut event = normal(answer, &Chosen::default()).body;
    revisions(&mut event);
    event
}

/// What normalizing answers leaves: revisions of lists and in texts, times of deletions, ages in tables.
fn revisions(value: &mut Value) {
    match value {
        Value::Object(members) => {
            // A list of nothing is null there, in this form alone.
            if members.get("kind").is_some_and(|kind| kind == "PartialObjectMetadataList")
                && let Some(items) = members.get_mut("items").filter(|items| items.is_null())
            {
                *items = Value::Array(Vec::new());
            }
            for (name, value) in members.iter_mut() {
                // How long it has is compared, and not when that ends.
                if name == "deletionTimestamp" && value.is_string() {
                    *value = "<then>".into();
                }
                let is_revision = matches!(name.as_str(), "resourceVersion" | "continue");
                if is_revision && value.as_str().is_some_and(|text| !text.is_empty() && text != "1") {
                    *value = "<rv>".into();
                }
                // Of a Table: ages differ with when it was asked, and columns are described in words of
                // ours. A server says where it is.
                if matches!(name.as_str(), "cells" | "columnDefinitions" | "serverAddressByClientCIDRs") {
                    *value = Value::Null;
                }
                // An object's key in the store is told without what comes before all keys in etcd.
                if name == "message"
                    && let Some(text) = value.as_str().filter(|text| text.contains("Key: /registry/"))
                {
                    *value = text.replace("Key: /registry/", "Key: /").into();
                }
                // What was refused is shown whole in the words of the refusal, with what its server chose.
                if name == "message"
                    && let Some(at) = value.as_str().and_then(|text| text.find("Invalid value: \"{"))
                {
                    let told = Value::from(&value.as_str().unwrap_or_default()[..at]);
                    *value = told;
                }
                revisions(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(revisions),
        _ => {}
    }
}
