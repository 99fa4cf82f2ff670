//! DaemonSets: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::{Value, json};

use crate::testing::Sample;
use crate::{Context, GroupKind, prepare_update, warnings};

fn sample() -> Sample {
    Sample::new(
        "apps",
        "v1",
        "DaemonSet",
        json!({
            "metadata": {"name": "ds", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": "w"}},
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
            "metadata": {
                "annotations": {"deprecated.daemonset.template.generation": "1"},
                "generation": 1,
                "name": "ds",
                "namespace": "default",
            },
            "spec": {
                "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app": "w"}},
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
                "updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}, "type": "RollingUpdate"},
            },
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec.selector=null", &[r#"spec.template.metadata.labels: Invalid value: {"app":"w"}: `selector` does not match template `labels`"#]),
        ("spec.selector={}", &["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"]),
        (r#"spec.selector={"matchLabels":{"app":"x"}}"#, &[r#"spec.template.metadata.labels: Invalid value: {"app":"w"}: `selector` does not match template `labels`"#]),
        (r#"spec.template.spec.restartPolicy="Never""#, &[r#"spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#]),
        (r#"spec.updateStrategy={"type":"X"}"#, &[r#"spec.updateStrategy: Unsupported value: {"Type":"X","RollingUpdate":null}: supported values: "RollingUpdate", "OnDelete""#]),
        (r#"spec.updateStrategy={"type":"OnDelete"}"#, &[]),
        (r#"spec.updateStrategy={"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}}"#, &["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]),
        (r#"spec.updateStrategy={"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}"#, &["spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"]),
        (r#"spec.updateStrategy={"rollingUpdate":{"maxSurge":"101%","maxUnavailable":0}}"#, &[r#"spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "101%": must not be greater than 100%"#]),
        ("spec.minReadySeconds=-1", &["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.revisionHistoryLimit=-1", &["spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (
            r#"spec.selector={"matchLabels":{"app":"x"}};spec.template.metadata.labels={"app":"x"}"#,
            &[r#"spec.selector: Invalid value: {"matchLabels":{"app":"x"}}: field is immutable"#],
        ),
        (r#"spec.template.spec.containers.0.image="b""#, &[]),
        (
            "@status status.numberReady=-1",
            &["status.numberReady: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            "@status status.desiredNumberScheduled=-1;status.currentNumberScheduled=-1",
            &[
                "status.currentNumberScheduled: Invalid value: -1: must be greater than or equal to 0",
                "status.desiredNumberScheduled: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        ("spec.minReadySeconds=3", &[]),
    ]);
}

#[test]
fn an_update_is_told_of_a_template_that_it_changes() {
    let kind = GroupKind { group: "apps", kind: "DaemonSet", custom: None };
    let of = |generation: u32, of_template: &str| {
        let annotations = json!({ "deprecated.daemonset.template.generation": of_template });
        let spec =
            json!({ "containers": [], "topologySpreadConstraints": [{ "topologyKey": "z", "maxSkew": 1 }] });
        json!({
            "metadata": { "name": "d", "generation": generation, "annotations": annotations },
            "spec": { "template": { "spec": spec } },
        })
    };
    let count = |new: &Value, update| warnings(&kind, new, update).len();
    let (old, same, other) = (of(1, "1"), of(2, "1"), of(2, "2"));
    assert_eq!(count(&old, None), 1);
    assert_eq!(count(&same, Some((None, &old))), 0, "what else is changed is none of its concern");
    assert_eq!(count(&other, Some((None, &old))), 1);
    assert_eq!(count(&other, Some((Some("status"), &old))), 0);
}

#[test]
fn resources_of_a_pod_as_a_whole_are_another_template_though_they_are_empty() {
    let kind = GroupKind::built_in("apps", "DaemonSet");
    let generation = "deprecated.daemonset.template.generation";
    let of = |spec: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": { "name": "d", "generation": 1, "annotations": { generation: "1" } },
            "spec": { "template": { "spec": spec } },
        })
    };
    let old = of(json!({ "containers": [{ "name": "c" }] }));
    for (spec, want) in [
        (json!({ "containers": [{ "name": "c", "resources": {} }] }), 1),
        (json!({ "containers": [{ "name": "c" }], "resources": {} }), 2),
    ] {
        let mut new = of(spec.clone());
        let context = Context { now: "2026-01-01T00:00:00Z", user: None };
        prepare_update(&kind, None, &mut new, &old, &context);
        assert_eq!(new["metadata"]["generation"], want, "{spec}");
        assert_eq!(new["metadata"]["annotations"][generation], want.to_string(), "{spec}");
    }
}
