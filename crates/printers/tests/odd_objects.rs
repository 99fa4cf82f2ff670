//! Objects that no schema would let through: every value of every case replaced by every other type, one at a
//! time. Each prints the same from what its printer reads of it as from all of it.

use forebay_printers::{printer, row};
use jiff::Timestamp;
use serde_json::{Value, json};

const CASES: [&str; 7] = [
    include_str!("cases/access.jsonl"),
    include_str!("cases/core.jsonl"),
    include_str!("cases/events.jsonl"),
    include_str!("cases/infrastructure.jsonl"),
    include_str!("cases/pods.jsonl"),
    include_str!("cases/services.jsonl"),
    include_str!("cases/workloads.jsonl"),
];

/// Pointers to every value inside `value`.
fn places(value: &Value, prefix: &str, into: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, child)| (escaped(key), child)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, child)| (index.to_string(), child)).collect()
        }
        _ => Vec::new(),
    };
    for (key, child) in children {
        let place = format!("{prefix}/{key}");
        places(child, &place, into);
        into.push(place);
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[test]
fn a_value_of_another_type_changes_no_number_of_cells_and_never_panics() {
    let now: Timestamp = "2026-06-01T12:00:00Z".parse().unwrap();
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.5e300),
        json!(""),
        json!("ü\u{0}🦀"),
        json!("9999-12-31T23:59:59Z"),
        json!([]),
        json!([null, 1, "a", {}]),
        json!({}),
        json!({"": null}),
    ];
    let mut rows = 0;
    for line in CASES.iter().flat_map(|cases| cases.lines()) {
        let mut case: Value = serde_json::from_str(line).unwrap();
        let (group, kind) =
            (case["group"].as_str().unwrap().to_owned(), case["kind"].as_str().unwrap().to_owned());
        let cells = case["cells"].as_array().unwrap().len();
        let mut object = case["object"].take();
        let mut all = vec![String::new()];
        places(&object, "", &mut all);
        for (place, value) in all.iter().flat_map(|place| odd.iter().map(move |value| (place, value))) {
            let kept = std::mem::replace(object.pointer_mut(place).unwrap(), value.clone());
            let printed = row(&group, &kind, &object, now);
            assert_eq!(printed.cells.len(), cells, "{kind} {place} {value}");
            let printer = printer(&group, &kind);
            let read = printer.read(object.to_string().as_bytes()).unwrap();
            // Members that stand where items belong are counted by some cells, whatever their names.
            assert!(value.is_object() || printer.row(&read, now) == printed, "{kind} {place} {value}");
            *object.pointer_mut(place).unwrap() = kept;
            rows += 1;
        }
    }
    assert!(rows > 10_000, "{rows}");
}

#[test]
fn the_ends_of_time_are_no_trouble() {
    let object = json!({"metadata": {"name": "a", "creationTimestamp": "-009999-01-02T01:59:59Z"}});
    for now in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
        assert_eq!(row("", "ServiceAccount", &object, now).cells.len(), 2);
        assert_eq!(row("example.com", "Web", &object, now).cells.len(), 2);
    }
}
