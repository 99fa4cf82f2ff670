//! Events, of core and of events.k8s.io: the same object under other field names.
//!
//! In: v1 values of either group. Out: their cells. Never: an order; they are printed as they are listed.

use jiff::Timestamp;
use serde_json::Value;

use crate::member::Member;
use crate::table::{Column, NAME, Printer, cells, string};

const COLUMNS: &[Column] = &[
    string("Last Seen", "Time since it happened last."),
    string("Type", "Normal or Warning."),
    string("Reason", "Why it happened, for machines."),
    string("Object", "Object it is about."),
    string("Subobject", "Part of the object it is about.").wide(),
    string("Source", "Component that reported it, and where that runs.").wide(),
    string("Message", "What happened, for people."),
    string("First Seen", "Time since it happened first.").wide(),
    string("Count", "How often it happened.").wide(),
    NAME.wide(),
];

pub(crate) static CORE_EVENT: Printer = Printer::new(COLUMNS, |event, now| event_cells(event, &CORE, now));
pub(crate) static EVENT: Printer = Printer::new(COLUMNS, |event, now| event_cells(event, &EVENTS, now));

/// What the two groups call the fields that differ.
struct Fields {
    about: &'static str,
    source: &'static str,
    reporter: &'static str,
    message: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
}

const CORE: Fields = Fields {
    about: "involvedObject",
    source: "source",
    reporter: "reportingComponent",
    message: "message",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
};

const EVENTS: Fields = Fields {
    about: "regarding",
    source: "deprecatedSource",
    reporter: "reportingController",
    message: "note",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
};

fn event_cells(event: Member<'_>, fields: &Fields, now: Timestamp) -> Vec<Value> {
    let about = event.get(fields.about);
    let (last_seen, first_seen, count) = occurrences(event, fields, now);
    cells![
        last_seen,
        event.get("type").text(),
        event.get("reason").text(),
        target(about),
        about.get("fieldPath").text(),
        source(event, fields),
        event.get(fields.message).text().trim(),
        first_seen,
        count,
        event.name(),
    ]
}

/// Last seen, first seen, count. New-style events have an event time and a series instead of the old three.
fn occurrences(event: Member<'_>, fields: &Fields, now: Timestamp) -> (String, String, i64) {
    let (first, last, series) = (event.get(fields.first), event.get(fields.last), event.get("series"));
    let first_seen = match first.time() {
        Some(_) => first.since(now),
        None => event.get("eventTime").since(now),
    };
    if series.is_set() {
        return (series.get("lastObservedTime").since(now), first_seen, series.get("count").int());
    }
    let last_seen = match last.time() {
        Some(_) => last.since(now),
        None => first_seen.clone(),
    };
    let count = event.get(fields.count).int_if_set().filter(|&count| count != 0).unwrap_or(1);
    (last_seen, first_seen, count)
}

fn target(about: Member<'_>) -> String {
    let kind = about.get("kind").text().to_lowercase();
    match about.get("name").text() {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: Member<'_>, fields: &Fields) -> String {
    let source = event.get(fields.source);
    let component = source.get("component").text_or(event.get(fields.reporter).text());
    match source.get("host").text_or(event.get("reportingInstance").text()) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
