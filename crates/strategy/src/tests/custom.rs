//! Custom resources: their status, their generation, their metadata.
//!
//! In: custom resources. Out: what is stored, and what is refused. Never: a schema.

use forebay_crd::{CustomRules, ScalePaths};
use serde_json::json;

use crate::{Context, Privileged, scale_causes, validate_update, warnings};
use crate::{GroupKind, prepare_create, prepare_update, validate_create};

const CONTEXT: Context<'static> = Context { now: "2026-01-01T00:00:00Z", user: None };

fn rules() -> CustomRules {
    CustomRules { namespaced: true, status_subresource: true, scale: None }
}

#[test]
fn the_status_is_written_through_its_subresource_only() {
    let rules = rules();
    let kind = GroupKind { group: "example.com", kind: "Foo", custom: Some(&rules) };
    let mut object = json!({"metadata": {"name": "f", "namespace": "n"}, "spec": 1, "status": 1});
    prepare_create(&kind, &mut object, &CONTEXT);
    assert_eq!(object, json!({"metadata": {"name": "f", "namespace": "n", "generation": 1}, "spec": 1}));
    let rows = [
        (None, json!({"generation": 2}), json!(2), json!(null)),
        (Some("status"), json!({"generation": 1}), json!(1), json!(2)),
    ];
    for (subresource, meta, spec, status) in rows {
        let mut new = json!({"metadata": {"name": "f", "namespace": "n"}, "spec": 2, "status": 2});
        prepare_update(&kind, subresource, &mut new, &object, &CONTEXT);
        assert_eq!(new["metadata"]["generation"], meta["generation"], "{subresource:?}");
        assert_eq!(new.get("spec"), Some(&spec), "{subresource:?}");
        assert_eq!(new.get("status").cloned().unwrap_or_default(), status, "{subresource:?}");
    }
}

#[test]
fn names_and_identity_are_looked_at() {
    let rules = rules();
    let kind = GroupKind { group: "example.com", kind: "Foo", custom: Some(&rules) };
    let new = json!({"metadata": {"name": "A", "namespace": "n"}});
    let causes = validate_create(&kind, &new, Privileged::Allowed);
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].field, "metadata.name");
    let old = json!({"metadata": {"name": "f", "namespace": "n", "uid": "u", "resourceVersion": "1"}});
    let new = json!({"metadata": {"name": "f", "namespace": "n", "uid": "v", "resourceVersion": "1"}});
    let causes = validate_update(&kind, None, &new, &old, Privileged::Allowed);
    assert!(!causes.is_empty());
    assert!(
        causes.iter().all(|cause| cause.message == "Invalid value: \"v\": field is immutable"),
        "{causes:?}"
    );
}

#[test]
fn what_is_outside_of_namespaces_is_in_none() {
    let rules = CustomRules { namespaced: false, ..rules() };
    let kind = GroupKind { group: "example.com", kind: "Foo", custom: Some(&rules) };
    let mut object = json!({"metadata": {"name": "f", "namespace": "n"}});
    prepare_create(&kind, &mut object, &CONTEXT);
    assert!(object["metadata"].get("namespace").is_none());
}

#[test]
fn finalizers_that_are_new_and_anybodys_are_warned_of() {
    let rules = rules();
    let kind = GroupKind { group: "example.com", kind: "Foo", custom: Some(&rules) };
    let with = |names: &[&str]| json!({"metadata": {"name": "f", "namespace": "n", "finalizers": names}});
    let prefer = "to avoid accidental conflicts with other finalizer writers";
    let plain = format!("metadata.finalizers: \"b\": prefer a domain-qualified finalizer name {prefer}");
    let path = format!(
        "metadata.finalizers: \"a.example.com\": prefer a domain-qualified finalizer name including a path (/) \
         {prefer}"
    );
    let all = with(&["b", "orphan", "example.com/c", "a.example.com", "b"]);
    assert_eq!(warnings(&kind, &all, None), [path.clone(), plain]);
    assert_eq!(warnings(&kind, &all, Some((None, &with(&["b"])))), [path]);
    assert_eq!(warnings(&kind, &all, Some((Some("status"), &all))).len(), 0);
    let said = warnings(&kind, &with(&["-x"]), None);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("metadata.finalizers: \"-x\": name part must consist of"), "{said:?}");
}

#[test]
fn what_a_scale_reads_is_looked_at_apart_from_the_rest() {
    let paths = ScalePaths {
        spec_replicas: ".spec.size".into(),
        status_replicas: ".status.size".into(),
        label_selector: None,
    };
    let rules = CustomRules { scale: Some(paths), ..rules() };
    let kind = GroupKind { group: "example.com", kind: "Foo", custom: Some(&rules) };
    let meta = json!({"name": "f", "namespace": "n", "resourceVersion": "1"});
    let object = json!({"metadata": meta, "spec": {"size": -1}, "status": {"size": -2}});
    assert_eq!(validate_create(&kind, &object, Privileged::Allowed), []);
    assert_eq!(validate_update(&kind, None, &object, &object, Privileged::Allowed), []);
    let fields = |subresource| {
        scale_causes(&kind, subresource, &object).into_iter().map(|cause| cause.field).collect::<Vec<_>>()
    };
    assert_eq!(fields(None), [".spec.size", ".status.size"]);
    assert_eq!(fields(Some("status")), [".status.size"]);
    assert_eq!(scale_causes(&GroupKind::built_in("", "Pod"), None, &object), []);
}
