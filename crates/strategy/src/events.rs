//! The kinds of `events.k8s.io`.
//!
//! In: Events with `regarding` and `note`. Out: rows for [`rules`](super::rules). Never: the core group's
//! form.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation/events.go`.

use serde_json::Value;

use super::core::event::{Names, validate};
use super::field::{BadValue, Causes, Path};
use super::internal;
use super::meta::{IMMUTABLE, validate_built_in_create, validate_built_in_update};
use super::names::NameRule;
use super::rule::DefaultPropagation;
use super::rule::{Flags, NONE, Rules, Update};
use super::value::{Members, child, child_or_empty, int, same_member, text};

pub const KINDS: &[Rules] = &[Rules {
    kind: "Event",
    validate_create,
    validate_update,
    flags: Flags { expires: true, propagation: DefaultPropagation::Unsupported, ..Flags::CREATED_ON_UPDATE },
    ..NONE
}];

const EVENTS: Names = Names { object: "regarding", message: "note", controller: "reportingController" };

fn validate_create(event: &Members, causes: &mut Causes) {
    validate(event, &EVENTS, causes);
    validate_built_in_create(child_or_empty(event, "metadata"), true, NameRule::Subdomain, causes);
    series(event, causes);
    if text(event, "eventTime").is_empty() {
        causes.required(&Path::root("eventTime"), "");
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        causes.invalid(&Path::root("type"), "", &format!("has invalid value: {kind}"));
    }
    const OLD: [(&str, &str); 4] = [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ];
    for (name, core_name) in OLD {
        let set = match event.get(name) {
            None => false,
            Some(Value::Object(members)) => members.values().any(|member| member != ""),
            Some(value) => value.as_i64() != Some(0),
        };
        if set {
            causes.invalid(&Path::root(core_name), "", "needs to be unset");
        }
    }
}

fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate(new, &EVENTS, causes);
    validate_built_in_update(new, old, causes);
    if !same_member(new, old, "series") {
        series(new, causes);
    }
    // As it is named here, and as it is named in the core group, whose names are in the messages.
    const FIXED: [(&str, &str); 14] = [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (name, core_name) in FIXED {
        if !same_member(new, old, name) {
            causes.invalid(&Path::root(core_name), bad(new, name), IMMUTABLE);
        }
    }
}

/// The value as upstream's internal type has it: what is absent is zero.
fn bad<'o>(event: &'o Members, name: &str) -> BadValue<'o> {
    match (name, event.get(name)) {
        ("regarding", _) => internal::shown("ObjectReference", child_or_empty(event, name)),
        ("related", Some(Value::Object(reference))) => internal::shown("ObjectReference", reference),
        ("deprecatedSource", _) => internal::shown("EventSource", child_or_empty(event, name)),
        (_, Some(value)) => BadValue::Json(value),
        ("deprecatedCount", None) => BadValue::Int(0),
        ("related" | "eventTime" | "deprecatedFirstTimestamp" | "deprecatedLastTimestamp", None) => {
            BadValue::Nil
        }
        (_, None) => BadValue::Text(""),
    }
}

fn series(event: &Members, causes: &mut Causes) {
    let Some(series) = child(event, "series") else { return };
    if int(series, "count").unwrap_or(0) < 2 {
        causes.invalid(&Path::root("series.count"), "", "should be at least 2");
    }
    if text(series, "lastObservedTime").is_empty() {
        causes.required(&Path::root("series.lastObservedTime"), "");
    }
}
