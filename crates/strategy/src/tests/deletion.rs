//! What a DELETE makes of an object.
//!
//! In: a stored object, options. Out: what is to be done, and what is then stored. Never: a store.

use serde_json::{Value, json};

use crate::{
    DeleteOptions, Deletion, GroupKind, Propagation, may_finish_deletion, start_deletion,
    start_namespace_deletion,
};

const NOW: &str = "2026-01-01T00:00:00Z";

fn options(grace: Option<i64>, propagation: Option<Propagation>) -> DeleteOptions {
    DeleteOptions { grace_period_seconds: grace, orphan_dependents: None, propagation }
}

#[test]
fn pods_are_given_their_grace_once_they_are_on_a_node() {
    let rows = [
        (json!({}), None, Deletion::StoreAndRemove, Some(0)),
        (json!({"nodeName": "n", "terminationGracePeriodSeconds": 30}), None, Deletion::Store, Some(30)),
        (json!({"nodeName": "n", "terminationGracePeriodSeconds": 30}), Some(5), Deletion::Store, Some(5)),
        (json!({"nodeName": "n", "terminationGracePeriodSeconds": 30}), Some(-1), Deletion::Store, Some(1)),
        (
            json!({"nodeName": "n", "terminationGracePeriodSeconds": 30}),
            Some(0),
            Deletion::StoreAndRemove,
            Some(0),
        ),
    ];
    for (spec, grace, deletion, seconds) in rows {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec});
        let done = start_deletion(&GroupKind::built_in("", "Pod"), &mut pod, &options(grace, None), NOW);
        assert_eq!(done, deletion, "{pod}");
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"].as_i64(), seconds, "{pod}");
        assert!(pod["metadata"]["deletionTimestamp"].is_string(), "{pod}");
    }
}

#[test]
fn a_deletion_may_be_hastened_but_not_put_off() {
    let kind = GroupKind::built_in("", "Pod");
    let mut pod = json!({"metadata": {}, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}});
    assert_eq!(start_deletion(&kind, &mut pod, &options(None, None), NOW), Deletion::Store);
    assert_eq!(pod["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    assert_eq!(start_deletion(&kind, &mut pod, &options(Some(60), None), NOW), Deletion::AlreadyDeleting);
    assert_eq!(start_deletion(&kind, &mut pod, &options(Some(10), None), NOW), Deletion::Store);
    assert_eq!(pod["metadata"]["deletionTimestamp"], "2026-01-01T00:00:10Z");
}

#[test]
fn dependents_are_waited_for_or_orphaned_by_a_finalizer() {
    let rows = [
        (None, json!(null), Deletion::Remove),
        (Some(Propagation::Background), json!(null), Deletion::Remove),
        (Some(Propagation::Foreground), json!(["foregroundDeletion"]), Deletion::Store),
        (Some(Propagation::Orphan), json!(["orphan"]), Deletion::Store),
    ];
    for (propagation, finalizers, deletion) in rows {
        let mut object = json!({"metadata": {"name": "a"}});
        let kind = GroupKind::built_in("apps", "Deployment");
        assert_eq!(start_deletion(&kind, &mut object, &options(None, propagation), NOW), deletion);
        assert_eq!(object["metadata"].get("finalizers").cloned().unwrap_or(Value::Null), finalizers);
    }
}

#[test]
fn an_update_ends_what_nothing_holds_any_more() {
    let deleting =
        |finalizers: Value| json!({"metadata": {"deletionTimestamp": NOW, "finalizers": finalizers}});
    let kind = GroupKind::built_in("", "ConfigMap");
    assert!(may_finish_deletion(&kind, &deleting(json!([])), &deleting(json!(["a/b"]))));
    assert!(!may_finish_deletion(&kind, &deleting(json!(["a/b"])), &deleting(json!(["a/b"]))));
    let alive = json!({"metadata": {}});
    assert!(!may_finish_deletion(&kind, &alive, &alive));
}

#[test]
fn a_namespace_terminates_until_its_content_is_gone() {
    let mut namespace = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}});
    let start = |namespace: &mut Value| start_namespace_deletion(namespace, &options(None, None), NOW);
    assert_eq!(start(&mut namespace), Some(Deletion::Store));
    assert_eq!(namespace["status"]["phase"], "Terminating");
    assert_eq!(start(&mut namespace), Some(Deletion::AlreadyDeleting));
    namespace["spec"]["finalizers"] = json!([]);
    assert_eq!(start(&mut namespace), None);
}
