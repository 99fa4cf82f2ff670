//! Flow schemas and priority levels.
//!
//! In: v1 values. Out: their cells, and the order FlowSchemas are listed in. Never: flow control itself.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static FLOW_SCHEMA: Printer = Printer::new(
    &[
        NAME,
        string("PriorityLevel", "Priority level of its requests."),
        string("MatchingPrecedence", "Lower ones are asked first."),
        string("DistinguisherMethod", "What tells flows apart."),
        AGE,
        string("MissingPL", "Whether the priority level is missing."),
    ],
    flow_schema_cells,
);

pub(crate) static PRIORITY_LEVEL_CONFIGURATION: Printer = Printer::new(
    &[
        NAME,
        string("Type", "Limited or Exempt."),
        string("NominalConcurrencyShares", "Share of all seats."),
        string("Queues", "Number of queues."),
        string("HandSize", "Queues a flow is dealt."),
        string("QueueLengthLimit", "Requests that may wait in a queue."),
        AGE,
    ],
    priority_level_cells,
);

fn flow_schema_cells(schema: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = schema.get("spec");
    let method = spec.get("distinguisherMethod");
    let dangling = schema.condition("Dangling");
    cells![
        schema.name(),
        spec.get("priorityLevelConfiguration").get("name").text(),
        precedence(schema),
        if method.is_set() { method.get("type").text() } else { "<none>" },
        schema.age(now),
        if dangling.is_set() { dangling.get("status").text() } else { "?" },
    ]
}

fn precedence(schema: Member<'_>) -> i64 {
    or_default(schema.get("spec").get("matchingPrecedence"), 1000)
}

/// Zero stands for the default in this group.
fn or_default(number: Member<'_>, default: i64) -> i64 {
    number.int_if_set().filter(|&number| number != 0).unwrap_or(default)
}

/// A table of FlowSchemas is sorted by precedence, then by name; no other table is sorted.
pub(crate) fn flow_schema_order(a: &Value, b: &Value) -> Ordering {
    let (a, b) = (Member::of(a), Member::of(b));
    precedence(a).cmp(&precedence(b)).then_with(|| a.name().cmp(b.name()))
}

/// Shares, queues, hand size and queue length are numbers where they apply.
fn priority_level_cells(level: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = level.get("spec");
    let limited = spec.get("limited");
    let queuing = limited.get("limitResponse").get("queuing");
    let number = |holder: Member<'_>, number: i64| match holder.is_set() {
        true => Value::from(number),
        false => Value::from("<none>"),
    };
    cells![
        level.name(),
        spec.get("type").text(),
        number(limited, limited.get("nominalConcurrencyShares").int_if_set().unwrap_or(30)),
        number(queuing, or_default(queuing.get("queues"), 64)),
        number(queuing, or_default(queuing.get("handSize"), 8)),
        number(queuing, or_default(queuing.get("queueLengthLimit"), 50)),
        level.age(now),
    ]
}
