//! HorizontalPodAutoscalers of v1: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "autoscaling",
        "v1",
        "HorizontalPodAutoscaler",
        json!({
            "metadata": {"name": "h1", "namespace": "default"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "maxReplicas": 3,
            },
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "h1", "namespace": "default"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
                "minReplicas": 1,
                "maxReplicas": 3,
                "targetCPUUtilizationPercentage": 80,
            },
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec=null", &["spec.maxReplicas: Required value: must be set and greater than 0", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`", "spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Required value", r#"spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group"#]),
        ("spec.maxReplicas=0", &["spec.maxReplicas: Required value: must be set and greater than 0", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`"]),
        ("spec.minReplicas=0", &["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1", "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas"]),
        ("spec.targetCPUUtilizationPercentage=0", &["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"]),
        ("spec.targetCPUUtilizationPercentage=50", &[]),
        ("spec.targetCPUUtilizationPercentage=-1", &["spec.metrics[0].resource.target.averageUtilization: Invalid value: -1: must be greater than 0"]),
        ("spec.scaleTargetRef={}", &["spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Required value", r#"spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.targetCPUUtilizationPercentage=-1", &["spec.metrics[0].resource.target.averageUtilization: Invalid value: -1: must be greater than 0"]),
        ("spec.targetCPUUtilizationPercentage=null", &[]),
        ("spec.maxReplicas=0", &["spec.maxReplicas: Required value: must be set and greater than 0", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`"]),
        ("@status status.currentReplicas=-1", &["status.currentReplicas: Invalid value: -1: must be greater than or equal to 0"]),
    ]);
}
