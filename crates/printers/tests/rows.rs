//! The cells of every kind, case by case. What is expected was printed by Kubernetes v1.36.3 for the same
//! object at the same moment; the cases themselves are ours. One case a line: name, group, kind, cells,
//! conditions, object.

use forebay_printers::row;
use jiff::Timestamp;
use serde_json::{Value, json};

const NOW: &str = "2026-06-01T12:00:00Z";

#[track_caller]
fn check(cases: &str) {
    let now: Timestamp = NOW.parse().unwrap();
    let mut failed = String::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (group, kind) = (case["group"].as_str().unwrap(), case["kind"].as_str().unwrap());
        let row = row(group, kind, &case["object"], now);
        let conditions: Vec<Value> = row
            .conditions
            .iter()
            .map(|c| json!({"type": c.type_, "status": c.status, "reason": c.reason, "message": c.message}))
            .collect();
        let expected = (&case["cells"], case.get("conditions").cloned().unwrap_or_else(|| json!([])));
        let printed = (&Value::from(row.cells), Value::from(conditions));
        if printed != expected {
            let name = &case["name"];
            failed += &format!("{kind} {name}\n  expected {expected:?}\n  printed  {printed:?}\n");
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn pods() {
    check(include_str!("cases/pods.jsonl"));
}

#[test]
fn services_and_endpoints() {
    check(include_str!("cases/services.jsonl"));
}

#[test]
fn the_rest_of_core() {
    check(include_str!("cases/core.jsonl"));
}

#[test]
fn events_of_both_groups() {
    check(include_str!("cases/events.jsonl"));
}

#[test]
fn workloads_and_autoscaling() {
    check(include_str!("cases/workloads.jsonl"));
}

#[test]
fn access_admission_and_the_server_itself() {
    check(include_str!("cases/access.jsonl"));
}

#[test]
fn network_storage_and_scheduling() {
    check(include_str!("cases/infrastructure.jsonl"));
}

#[test]
fn kinds_nobody_knows_show_name_and_creation() {
    let object = json!({"metadata": {"name": "web", "creationTimestamp": "2026-05-31T07:00:00Z"}});
    for (group, kind) in [("example.com", "Web"), ("apps", "Pod"), ("", "Deployment"), ("", "")] {
        let row = row(group, kind, &object, NOW.parse().unwrap());
        assert_eq!(row.cells, ["web", "2026-05-31T07:00:00Z"], "{group}/{kind}");
    }
}

#[test]
fn ages_follow_the_present_that_is_given() {
    let object = json!({"metadata": {"name": "a", "creationTimestamp": "2026-06-01T11:59:00Z"}});
    for (now, age) in [("2026-06-01T11:59:00Z", "0s"), ("2026-06-01T11:59:59.999Z", "59s"), (NOW, "60s")] {
        assert_eq!(row("", "ServiceAccount", &object, now.parse().unwrap()).cells, ["a", age]);
    }
}
