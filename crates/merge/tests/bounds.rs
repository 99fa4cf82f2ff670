//! What a client can make a merge cost, and what it is told.
//!
//! In: sets and objects that nobody means well with. Out: errors, and steps that grow as the input does.
//! Never: Go, which `tests/upstream` needs.

mod small;

use forebay_apimachinery::json::weight;
use forebay_apimachinery::lease::{Lease, Ledger, TREE_BYTES_MAX};
use forebay_apimachinery::steps;
use forebay_fuzz::peak_of;
use forebay_merge::limits::{DEPTH_MAX, FAULT_BYTES_MAX};
use forebay_merge::{Duplicates, Managers, Owned, Set, TypedValue, Untyped, Updater};
use serde_json::{Value, json};
use small::{Same, Ty};

fn object(items: usize, value: &str) -> Value {
    // Not in order.
    let name = |n: usize| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let items: Vec<Value> = (0..items).map(|n| json!({"name": name(n), "value": value})).collect();
    let numbers: Vec<usize> = (0..items.len()).rev().collect();
    json!({"items": items, "numbers": numbers})
}

/// Steps of `work` for ten times as much are at most twelve times as many, and a few.
fn grows_as_its_input(what: &str, work: impl Fn(usize)) {
    let (few, many) = (steps::counted(|| work(400)), steps::counted(|| work(4_000)));
    assert!(few > 400, "{what}: {few} steps are not counted");
    assert!(many <= 14 * few, "{what}: {few} steps, then {many}");
}

#[test]
fn every_operation_grows_as_its_input() {
    let lease = Lease::of_server();
    let both = |n: usize| (object(n, "a"), object(n, "b"));
    grows_as_its_input("fields", |n| drop(TypedValue::known(&object(n, "a"), Ty::Root).fields()));
    grows_as_its_input("validate", |n| {
        TypedValue::new(&object(n, "a"), Ty::Root, Duplicates::Refused).expect("it is right");
    });
    grows_as_its_input("compare", |n| {
        let (a, b) = both(n);
        assert!(
            !TypedValue::known(&a, Ty::Root)
                .compare(&TypedValue::known(&b, Ty::Root))
                .expect("right")
                .is_same()
        );
    });
    grows_as_its_input("merge", |n| {
        let (a, b) = both(n);
        TypedValue::known(&a, Ty::Root).merge(&TypedValue::known(&b, Ty::Root), &lease).expect("right");
    });
    grows_as_its_input("without", |n| {
        let a = object(n, "a");
        let typed = TypedValue::known(&a, Ty::Root);
        let half = TypedValue::known(&object(n / 2, "a"), Ty::Root).fields().expect("right");
        typed.without(&half, &lease).expect("room");
    });
    grows_as_its_input("apply", |n| {
        let (a, b) = both(n);
        let updater = Updater { converter: Same, filters: Default::default(), lease: &lease };
        let null = Value::Null;
        let (live, first) = (TypedValue::known(&null, Ty::Root), TypedValue::known(&a, Ty::Root));
        let applied = updater.apply(&live, &first, "v1", Managers::new(), "one", false).expect("no conflict");
        let live = applied.object.expect("a new object");
        let less = object(n / 2, "b");
        let config = TypedValue::known(&less, Ty::Root);
        let applied =
            updater.apply(&live, &config, "v1", applied.managers, "one", false).expect("no conflict");
        let left = applied.object.expect("a changed object");
        assert_eq!(left.value["items"].as_array().map(Vec::len), Some(n / 2));
        drop(b);
    });
    grows_as_its_input("sets", |n| {
        let (a, b) = both(n);
        let fields = |value: &Value| TypedValue::known(value, Ty::Root).fields().expect("right");
        let (a, b) = (fields(&a), fields(&b));
        assert!(a.union(&b).difference(&b).is_empty());
        assert_eq!(a.intersection(&b).leaves().size(), a.leaves().size());
        let text = a.to_json();
        assert_eq!(Set::of_text(&text), Ok(a));
    });
}

#[test]
fn an_apply_grows_as_its_managers_do() {
    let lease = Lease::of_server();
    grows_as_its_input("managers", |n| {
        let (live, config) = (object(n, "a"), object(3, "b"));
        let (live, config) = (TypedValue::known(&live, Ty::Root), TypedValue::known(&config, Ty::Root));
        let owned = |fields| Owned { fields, version: "v1".into(), applied: true };
        let mut managers = Managers::new();
        // Each owns an item, and all the first one; who applies owned all.
        for item in live.value["items"].as_array().expect("items") {
            let own = json!({"items": [item, live.value["items"][0]]});
            let fields = TypedValue::known(&own, Ty::Root).fields().expect("right");
            managers.insert(item["name"].to_string(), owned(fields));
        }
        managers.insert("one".into(), owned(live.fields().expect("right")));
        let updater = Updater { converter: Same, filters: Default::default(), lease: &lease };
        let applied = updater.apply(&live, &config, "v1", managers, "one", true).expect("forced");
        assert_eq!(applied.object.expect("changed").value["items"].as_array().map(Vec::len), Some(n));
        assert!(applied.managers.len() >= n - 3);
    });
}

#[test]
fn a_set_whose_members_come_in_any_order_is_read() {
    let keys = |n: usize| {
        (0..n).rev().map(move |n| format!(r#""k:{{\"name\":\"{n}\"}}":{{".":{{}},"f:name":{{}}}}"#))
    };
    let text = |n: usize| format!(r#"{{"f:items":{{{}}}}}"#, keys(n).collect::<Vec<_>>().join(","));
    grows_as_its_input("reading", |n| {
        assert_eq!(Set::of_text(text(n).as_bytes()).expect("a set").size(), 2 * n);
    });
    // The same item in many ways, of which the last one says what is below it, and all that it is in the set.
    let same = |n: usize| {
        (0..n)
            .map(|n| format!(r#""k:{{\"n\":1.{}}}":{{"f:a{n}":{{}}}}"#, "0".repeat(n + 1)))
            .collect::<Vec<_>>()
    };
    let text = format!(r#"{{{},"k:{{\"n\":1}}":{{}}}}"#, same(100).join(","));
    let read = Set::of_text(text.as_bytes()).expect("a set");
    assert_eq!(read.size(), 2, "{read}");
    let tree = serde_json::from_str(&text).expect("JSON");
    assert_eq!(Set::of_json(&tree).expect("a set").size(), 2);
}

#[test]
fn what_is_no_set_is_refused_and_says_why() {
    let deep = |n: usize| r#"{"f:a":"#.repeat(n) + "{}" + &"}".repeat(n);
    let cases = [
        (r#"{"":{}}"#, "key must be 2 characters long"),
        (r#"{"f":{}}"#, "key must be 2 characters long"),
        (r#"{"fa":{}}"#, "missing colon: fa"),
        (r#"{"i:x":{}}"#, "parsing key \"i:x\" as path element: not a number"),
        (r#"{"k:1":{}}"#, "parsing key \"k:1\" as path element: the keys are no object"),
        (r#"{"v:":{}}"#, "parsing key \"v:\" as path element: unexpected end of JSON input"),
        (
            r#"{"k:{\"a\":}":{}}"#,
            "parsing key \"k:{\\\"a\\\":}\" as path element: invalid character '}' looking for beginning of value",
        ),
    ];
    for (text, why) in cases {
        let tree = serde_json::from_str(text).expect("JSON");
        assert_eq!(Set::of_json(&tree).expect_err(text).to_string(), why);
        assert_eq!(Set::of_text(text.as_bytes()).expect_err(text).to_string(), why);
    }
    assert_eq!(
        Set::of_json(&json!({"f:a": 1})).expect_err("no object").to_string(),
        "a set of fields is an object, not number"
    );
    for text in ["", "{", "[]", r#"{"f:a":1}"#, r#"{"f:a":{}"#, "\"f:a\""] {
        assert!(Set::of_text(text.as_bytes()).is_err(), "{text}");
    }
    // Of a kind to come; and nothing at all.
    assert!(Set::of_text(br#"{"z:a":{"f:b":{}}}"#).expect("a set").is_empty());
    assert!(Set::of_text(b"null").expect("a set").is_empty());
    assert!(Set::of_text(deep(DEPTH_MAX - 1).as_bytes()).is_ok());
    assert!(Set::of_text(deep(DEPTH_MAX).as_bytes()).is_err());
    // Out of order, so that it is read in the other way, and as deep.
    let disordered = |n: usize| format!(r#"{{"f:b":{{}},"f:a":{}}}"#, deep(n));
    assert!(Set::of_text(disordered(DEPTH_MAX - 2).as_bytes()).is_ok());
    assert!(Set::of_text(disordered(DEPTH_MAX - 1).as_bytes()).is_err());
}

#[test]
fn an_object_with_a_fault_in_each_field_is_told_of_some() {
    let items: Vec<Value> =
        (0..20_000).map(|n| json!({"name": n.to_string(), "value": {"long": "x".repeat(10)}})).collect();
    let value = json!({"items": items});
    let faults = TypedValue::new(&value, Ty::Root, Duplicates::Refused).expect_err("faults");
    let text = faults.to_string();
    assert!(text.len() < 2 * FAULT_BYTES_MAX, "{}", text.len());
    assert!(
        text.starts_with(
            "errors:\n  .items[name=\"0\"].value: expected string, got &value.valueUnstructured{Value:map["
        ),
        "{text}"
    );
    assert!(text.ends_with(" more"), "{}", &text[text.len() - 100..]);
}

#[test]
fn what_is_merged_is_charged_before_it_is_made() {
    let value = object(40_000, "a");
    let lease = Lease::of_one_tree();
    lease.charge(TREE_BYTES_MAX / 2).expect("room");
    let typed = TypedValue::known(&value, Ty::Root);
    typed.merge(&typed, &lease).expect_err("no room");
    assert!(lease.exhausted().is_some());
}

#[test]
fn items_that_are_the_same_are_let_through_where_they_were_stored_only() {
    let twice = json!({"items": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]});
    TypedValue::new(&twice, Ty::Root, Duplicates::Allowed).expect("stored");
    let refused = TypedValue::new(&twice, Ty::Root, Duplicates::Refused).expect_err("applied");
    assert_eq!(refused.to_string(), ".items: duplicate entries for key [name=\"a\"]");
    let fields = TypedValue::known(&twice, Ty::Root).fields().expect("right");
    assert_eq!(
        String::from_utf8(fields.to_json()).expect("text"),
        r#"{"f:items":{"k:{\"name\":\"a\"}":{}}}"#
    );
}

#[test]
fn what_has_no_schema_is_owned_field_by_field_and_list_by_list() {
    let value = json!({"a": {"b": [1, 2], "c": null}, "d": {}});
    let fields = TypedValue::known(&value, Untyped::Deduced).fields().expect("right");
    let text = String::from_utf8(fields.to_json()).expect("text");
    assert_eq!(text, r#"{"f:a":{".":{},"f:b":{},"f:c":{}},"f:d":{}}"#);
}

struct Endless;

impl Ledger for Endless {
    fn try_take(&mut self, _bytes: usize) -> bool {
        true
    }
}

#[test]
fn what_an_apply_holds_is_charged_and_what_it_made_stays_charged() {
    let numbers = |n: usize| json!({"numbers": (0..n).rev().collect::<Vec<_>>()});
    for (live, config) in [
        (object(10, "a"), object(5, "b")),
        (object(1_000, "a"), object(500, "b")),
        (object(20_000, "a"), object(10_000, "b")),
        (numbers(100_000), numbers(90_000)),
    ] {
        let lease = Lease::new(Endless, 0);
        let updater = Updater { converter: Same, filters: Default::default(), lease: &lease };
        let live = TypedValue::known(&live, Ty::Root);
        let config = TypedValue::known(&config, Ty::Root);
        let mut managers = Managers::new();
        managers.insert(
            "one".into(),
            Owned { fields: live.fields().expect("right"), version: "v1".into(), applied: true },
        );
        let apply = || updater.apply(&live, &config, "v1", managers.clone(), "one", true).expect("room");
        let (applied, peak) = peak_of(apply);
        // Sets are as long as the fields' text.
        let sets = 16 * managers["one"].fields.bytes();
        assert!(peak <= lease.peak() + sets + (64 << 10), "{peak} B are held, {} were charged", lease.peak());
        let made = weight::of(&applied.object.expect("it changed").value);
        assert!(
            (made..made + (128 << 10)).contains(&lease.used()),
            "{made} B stay, {} charged",
            lease.used()
        );
    }
}
