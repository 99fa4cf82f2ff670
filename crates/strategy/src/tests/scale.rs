//! Scales of built-in and of custom resources.
//!
//! In: objects and Scales. Out: replicas, or why not. Never: a store.

use serde_json::json;

use forebay_crd::{CustomRules, ScalePaths};

use crate::{GroupKind, ScaleError, apply_scale, to_scale};

const DEPLOYMENT: GroupKind<'static> = GroupKind::built_in("apps", "Deployment");

#[test]
fn a_scale_shows_replicas_and_whom_they_are() {
    let object = json!({
        "metadata": {"name": "d", "namespace": "n", "uid": "u", "resourceVersion": "5"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "w"}}},
        "status": {"replicas": 2},
    });
    let scale = to_scale(&DEPLOYMENT, &object).expect("a scale");
    assert_eq!(scale["spec"], json!({"replicas": 3}));
    assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=w"}));
    assert_eq!(scale["metadata"]["name"], "d");
    assert_eq!(scale["metadata"]["resourceVersion"], "5");
}

#[test]
fn replicas_are_taken_from_a_scale_that_is_of_the_object() {
    let mut object =
        json!({"metadata": {"name": "d", "namespace": "n", "uid": "u"}, "spec": {"replicas": 3}});
    let scale = |replicas: i64, uid: &str| json!({"metadata": {"name": "d", "namespace": "n", "uid": uid}, "spec": {"replicas": replicas}});
    assert_eq!(apply_scale(&DEPLOYMENT, &scale(5, "u"), &mut object), Ok(()));
    assert_eq!(object["spec"]["replicas"], 5);
    assert!(matches!(apply_scale(&DEPLOYMENT, &scale(1, "v"), &mut object), Err(ScaleError::OtherUid(_))));
    match apply_scale(&DEPLOYMENT, &scale(-1, "u"), &mut object) {
        Err(ScaleError::Invalid(causes)) => {
            assert_eq!(causes.len(), 1);
            assert_eq!(causes[0].field, "spec.replicas");
            assert_eq!(causes[0].message, "Invalid value: -1: must be greater than or equal to 0");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(object["spec"]["replicas"], 5);
}

#[test]
fn a_custom_resource_keeps_its_replicas_where_its_definition_says() {
    let rules = CustomRules {
        namespaced: true,
        status_subresource: true,
        scale: Some(ScalePaths {
            spec_replicas: ".spec.size".into(),
            status_replicas: ".status.size".into(),
            label_selector: None,
        }),
    };
    let kind = GroupKind { group: "example.com", kind: "Foo", custom: Some(&rules) };
    let mut object = json!({"metadata": {"name": "f"}, "spec": {"size": 2}});
    assert_eq!(to_scale(&kind, &object).expect("a scale")["spec"], json!({"replicas": 2}));
    let scale = json!({"metadata": {"name": "f"}, "spec": {"replicas": 7}});
    assert_eq!(apply_scale(&kind, &scale, &mut object), Ok(()));
    assert_eq!(object["spec"]["size"], 7);
    let without = json!({"metadata": {"name": "f"}, "spec": {}});
    assert!(matches!(to_scale(&kind, &without), Err(ScaleError::NoReplicas(_))));
}
