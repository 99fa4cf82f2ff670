//! What a client can make of who owns what cost: steps that grow as what it sent, and memory that its request
//! is charged.

use std::borrow::Cow;
use std::collections::BTreeMap;

use forebay_apimachinery::json::{DEPTH_MAX, weight};
use forebay_apimachinery::lease::{Ledger, TREE_BYTES_MAX};
use forebay_apimachinery::{Lease, Reason, steps};
use forebay_fieldmanager::{ConvertError, FieldManager, FieldType, Sent, Versions};
use forebay_fuzz::peak_of;
use forebay_merge::Untyped;
use serde_json::{Value, json};

struct One(FieldType<'static>);

impl Versions<'static> for One {
    fn type_in(&self, api_version: &str) -> Result<FieldType<'static>, ConvertError> {
        if api_version == "v1" { Ok(self.0) } else { Err(ConvertError::MissingVersion) }
    }

    fn convert(&self, _object: &Value, _api_version: &str) -> Result<Value, ConvertError> {
        unreachable!("there is one version")
    }
}

fn config_maps() -> One {
    One(FieldType::of_kind("", "v1", "ConfigMap").expect("a kind"))
}

fn manager<'m>(kind: &'m One, lease: &'m Lease) -> FieldManager<'m, 'static> {
    let (filters, now) = (BTreeMap::new(), "2026-01-01T00:00:00Z");
    FieldManager::new(kind, "v1", "ConfigMap", "", filters, now, lease).expect("a version")
}

/// A ConfigMap with so many entries, each of a manager with a key of its own.
fn config_map(managers: usize, operation: &str, value: &str) -> Value {
    // Not in order.
    let name = |n: usize| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let entry = |n: usize| {
        json!({
            "manager": name(n), "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {(format!("f:{}", name(n))): {}}},
        })
    };
    let data: BTreeMap<String, &str> = (0..managers).map(|n| (name(n), value)).collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "n", "uid": "u", "managedFields": (0..managers).map(entry).collect::<Vec<_>>()},
    })
}

/// Steps of `work` for ten times as much are at most some more than ten times as many.
fn grows_as_its_input(what: &str, work: impl Fn(usize)) {
    let (few, many) = (steps::counted(|| work(400)), steps::counted(|| work(4_000)));
    assert!(few > 400, "{what}: {few} steps are not counted");
    assert!(many <= 14 * few, "{what}: {few} steps, then {many}");
}

#[test]
fn an_update_and_an_apply_grow_as_what_is_known_of_managers() {
    let kind = config_maps();
    let lease = Lease::of_server();
    grows_as_its_input("update", |n| {
        let (live, new) = (config_map(n, "Update", "a"), config_map(n, "Update", "b"));
        let entries = manager(&kind, &lease).update(Some(&live), &new, Sent::AsTheyAre, "x").expect("room");
        assert_eq!(entries.len(), 1);
    });
    grows_as_its_input("update that is capped", |n| {
        let live = config_map(n, "Update", "a");
        let mut new = live.clone();
        new["data"]["mine"] = json!("x");
        let entries = manager(&kind, &lease).update(Some(&live), &new, Sent::AsTheyAre, "x").expect("room");
        assert_eq!(entries.len(), 10);
    });
    grows_as_its_input("apply", |n| {
        let live = config_map(n, "Apply", "a");
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}, "data": {"mine": "x"}});
        let applied = manager(&kind, &lease)
            .apply(Some(Cow::Borrowed(&live)), &config, "x", false, usize::MAX)
            .expect("no conflict");
        assert_eq!(applied["metadata"]["managedFields"].as_array().map(Vec::len), Some(n + 1));
    });
}

#[test]
fn what_is_in_the_way_is_told_as_far_as_an_answer_goes() {
    let kind = config_maps();
    let live = config_map(4_000, "Apply", "a");
    let mut config = config_map(4_000, "Apply", "b");
    config["metadata"] = json!({"name": "n"});
    let lease = Lease::of_server();
    let refusal = manager(&kind, &lease)
        .apply(Some(Cow::Borrowed(&live)), &config, "x", false, usize::MAX)
        .expect_err("conflicts");
    assert_eq!(refusal.causes.len(), 1_000);
    assert!(
        refusal.message.starts_with("Apply failed with 4000 conflicts: conflicts with \""),
        "{}",
        refusal.message
    );
    assert!(refusal.message.len() < 100 * refusal.causes.len());
}

struct Endless;

impl Ledger for Endless {
    fn try_take(&mut self, _bytes: usize) -> bool {
        true
    }
}

#[test]
fn what_is_held_is_charged_and_what_is_made_stays_charged() {
    let kind = config_maps();
    for managers in [1, 100, 5_000] {
        let (live, new) = (config_map(managers, "Apply", "a"), config_map(managers, "Apply", "b"));
        let lease = Lease::new(Endless, 0);
        let update = || manager(&kind, &lease).update(Some(&live), &new, Sent::AsTheyAre, "x").expect("room");
        let (entries, peak) = peak_of(update);
        assert!(peak <= lease.peak() + (64 << 10), "{peak} B are held, {} were charged", lease.peak());
        let made: usize = entries.iter().map(weight::of).sum();
        assert!(lease.used() >= made, "{made} B were made, {} are charged", lease.used());
    }
}

#[test]
fn what_no_store_would_take_is_refused_before_its_owners_are_made_into_trees() {
    let kind = config_maps();
    let live = config_map(5_000, "Apply", "a");
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}, "data": {"mine": "x"}
    });
    let apply = |lease: &Lease, bytes_max| {
        let given = Some(Cow::Owned(live.clone()));
        manager(&kind, lease).apply(given, &config, "x", false, bytes_max)
    };
    let lease = Lease::new(Endless, 0);
    let taken = apply(&lease, usize::MAX).expect("no limit");
    // Without spaces, as it is stored.
    let stored = taken.to_string().len();
    assert_eq!(apply(&Lease::of_server(), stored).expect("as long as it may be"), taken);
    let less = Lease::new(Endless, 0);
    let refusal = apply(&less, stored / 8).expect_err("longer than it may be");
    assert_eq!(refusal.reason, Reason::RequestEntityTooLarge);
    assert!(3 * less.used() < 2 * lease.used(), "{} of {} B are charged", less.used(), lease.used());
}

#[test]
fn without_room_nothing_is_done() {
    let kind = config_maps();
    let (live, new) = (config_map(5_000, "Update", "a"), config_map(5_000, "Update", "b"));
    let lease = Lease::of_one_tree();
    lease.charge(TREE_BYTES_MAX - (64 << 10)).expect("room");
    manager(&kind, &lease).update(Some(&live), &new, Sent::AsTheyAre, "x").expect_err("no room");
    let mut config = new;
    config["metadata"] = json!({"name": "n"});
    manager(&kind, &lease)
        .apply(Some(Cow::Borrowed(&live)), &config, "x", true, usize::MAX)
        .expect_err("no room");
    assert!(lease.exhausted().is_some());
}

#[test]
fn what_could_not_be_read_again_is_not_kept() {
    let kind = One(FieldType::Untyped(Untyped::Deduced));
    let lease = Lease::of_server();
    let owned = |levels: usize| {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}});
        object["spec"] = (0..levels).fold(json!(1), |below, _| json!({"a": below}));
        manager(&kind, &lease).update(None, &object, Sent::AsTheyAre, "x").expect("room").len()
    };
    assert_eq!(owned(DEPTH_MAX / 2), 1);
    assert_eq!(owned(DEPTH_MAX - 6), 1);
    assert_eq!(owned(DEPTH_MAX - 3), 0);
}
