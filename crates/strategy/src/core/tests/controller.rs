//! ReplicationControllers: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::{Value, json};

use crate::testing::Sample;
use crate::{GroupKind, warnings};

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "ReplicationController",
        json!({
            "metadata": {"name": "rc", "namespace": "default"},
            "spec": {
                "selector": {"app": "w"},
                "template": {
                    "metadata": {"labels": {"app": "w"}},
                    "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
                },
            },
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"generation": 1, "labels": {"app": "w"}, "name": "rc", "namespace": "default"},
            "spec": {
                "replicas": 1,
                "selector": {"app": "w"},
                "template": {
                    "metadata": {"labels": {"app": "w"}},
                    "spec": {
                        "containers": [
                            {
                                "image": "nginx:1",
                                "imagePullPolicy": "IfNotPresent",
                                "name": "c",
                                "terminationMessagePath": "/dev/termination-log",
                                "terminationMessagePolicy": "File",
                            },
                        ],
                        "dnsPolicy": "ClusterFirst",
                        "restartPolicy": "Always",
                        "schedulerName": "default-scheduler",
                        "securityContext": {},
                        "terminationGracePeriodSeconds": 30,
                    },
                },
            },
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec.replicas=-1", &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.minReadySeconds=-1", &["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.selector=null", &[]),
        (r#"spec.selector={"app":"x"}"#, &[r#"spec.template.metadata.labels: Invalid value: {"app":"w"}: `selector` does not match template `labels`"#]),
        ("spec.template=null", &["spec.template: Required value"]),
        (r#"spec.template.spec.restartPolicy="Never""#, &[r#"spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.replicas=2", &[]),
        ("spec.replicas=-1", &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.selector={"app":"x"};spec.template.metadata.labels={"app":"x"}"#, &[]),
        (
            "@status status.replicas=-1",
            &[
                "status.replicas: Invalid value: -1: must be greater than or equal to 0",
                "status.fullyLabeledReplicas: Invalid value: 0: cannot be greater than status.replicas",
                "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
            ],
        ),
        (
            "@status status.replicas=1;status.readyReplicas=2",
            &["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"],
        ),
    ]);
}

#[test]
fn an_update_is_told_of_the_template_that_goes() {
    let kind = GroupKind { group: "", kind: "ReplicationController", custom: None };
    let with = |generation: u32, constraints: Value| {
        json!({
            "metadata": { "name": "c", "generation": generation },
            "spec": { "template": { "spec": { "containers": [], "topologySpreadConstraints": constraints } } },
        })
    };
    let (plain, told) = (with(1, json!([])), with(1, json!([{ "topologyKey": "z", "maxSkew": 1 }])));
    let count = |new: &Value, subresource, old: &Value| warnings(&kind, new, Some((subresource, old))).len();
    let plain_next = with(2, json!([]));
    let told_next = with(2, json!([{ "topologyKey": "z", "maxSkew": 1 }]));
    assert_eq!(count(&plain_next, None, &told), 1);
    assert_eq!(count(&told_next, None, &plain), 0);
    assert_eq!(count(&told_next, Some("scale"), &told), 1, "also by way of its Scale");
    assert_eq!(count(&told_next, Some("status"), &told), 0);
    assert_eq!(count(&told, None, &told), 0, "whose generation is the same");
    assert_eq!(warnings(&kind, &told, None).len(), 1);
}
