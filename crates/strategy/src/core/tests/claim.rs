//! PersistentVolumeClaims: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "PersistentVolumeClaim",
        json!({
            "metadata": {"name": "pvc", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "pvc", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Pending"},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec.accessModes=[]", &["spec.accessModes: Required value: at least 1 access mode is required"]),
        (r#"spec.accessModes=["X"]"#, &[r#"spec.accessModes: Unsupported value: "X": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod""#]),
        (r#"spec.accessModes=["ReadWriteOncePod","ReadWriteOnce"]"#, &["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"]),
        ("spec.resources=null", &["spec.resources[storage]: Required value"]),
        (r#"spec.resources={"requests":{"storage":"0"}}"#, &[r#"spec.resources[storage]: Invalid value: "0": must be greater than zero"#]),
        (r#"spec.resources={"requests":{"storage":"-1"}}"#, &[r#"spec.resources[storage]: Invalid value: "-1": must be greater than zero"#]),
        (r#"spec.storageClassName="A_""#, &[r#"spec.storageClassName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must st…"#]),
        (r#"spec.volumeMode="X""#, &[r#"spec.volumeMode: Unsupported value: "X": supported values: "Block", "Filesystem""#]),
        (r#"spec.selector={"matchExpressions":[{"key":"a","operator":"X"}]}"#, &[r#"spec.selector.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator"#]),
        (r#"spec.dataSource={"kind":"","name":""}"#, &[]),
        (r#"spec.dataSource={"kind":"PersistentVolumeClaim","name":"x"}"#, &[]),
        (r#"spec.dataSource={"kind":"Foo","name":"x"}"#, &[]),
        (r#"spec.dataSourceRef={"kind":"PersistentVolumeClaim","name":"x","namespace":"A"}"#, &[]),
        (r#"spec.volumeAttributesClassName="A_""#, &[r#"spec.volumeAttributesClassName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', an…"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.resources={"requests":{"storage":"2Gi"}}"#, &["spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n@@ -6,7 +6,7 @@\n  \"Resources\": {\n   \"Limits\": null,\n   \"Requests\": {\n-   \"storage\": \"1Gi\"\n+   \"storage\": \"2Gi\"\n   }\n  },\n  \"VolumeName\": \"\",\n"]),
        (r#"spec.accessModes=["ReadOnlyMany"]"#, &["spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n@@ -1,6 +1,6 @@\n {\n  \"AccessModes\": [\n-  \"ReadWriteOnce\"\n+  \"ReadOnlyMany\"\n  ],\n  \"Selector\": null,\n  \"Resources\": {\n"]),
        (r#"spec.volumeName="x""#, &[]),
        (r#"spec.volumeMode="Block""#, &["spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n@@ -11,7 +11,7 @@\n  },\n  \"VolumeName\": \"\",\n  \"StorageClassName\": null,\n- \"VolumeMode\": \"Filesystem\",\n+ \"VolumeMode\": \"Block\",\n  \"DataSource\": null,\n  \"DataSourceRef\": null,\n  \"VolumeAttributesClassName\": null\n", r#"volumeMode: Invalid value: "Block": field is immutable"#]),
        (r#"spec.storageClassName="x""#, &[]),
        (r#"@status status.phase="Bound""#, &[]),
        (r#"@status status.capacity={"storage":"-1"}"#, &["status.capacity[storage]: Invalid value: -1: must be a valid resource quantity"]),
        (r#"@status status.conditions=[{"type":"","status":""}]"#, &[]),
        (r#"spec.resources={"requests":{"storage":"512Mi"}}"#, &["spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n@@ -6,7 +6,7 @@\n  \"Resources\": {\n   \"Limits\": null,\n   \"Requests\": {\n-   \"storage\": \"1Gi\"\n+   \"storage\": \"512Mi\"\n   }\n  },\n  \"VolumeName\": \"\",\n"]),
        (r#"!spec.storageClassName="a";spec.volumeName="v" => spec.resources={"requests":{"storage":"2Gi"}}"#, &["spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n@@ -6,7 +6,7 @@\n  \"Resources\": {\n   \"Limits\": null,\n   \"Requests\": {\n-   \"storage\": \"1Gi\"\n+   \"storage\": \"2Gi\"\n   }\n  },\n  \"VolumeName\": \"v\",\n"]),
    ]);
}

#[test]
fn what_a_claim_was_allotted_is_storage_or_somebodys_own() {
    const STATES: &str = r#""ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending""#;
    let (resources, statuses) = ("status.allocatedResources", "status.allocatedResourceStatuses");
    sample().check_updates(&[
        (&format!(r#"@status {resources}={{"storage":"1Gi","a.b/c":"1"}}"#), &[]),
        (
            &format!(r#"@status {resources}={{"cpu":"1"}}"#),
            &[&format!(r#"{resources}: Unsupported value: "cpu": supported values: "storage""#)],
        ),
        (
            &format!(r#"@status {resources}={{"kubernetes.io/x":"1"}}"#),
            &[&format!(r#"{resources}: Unsupported value: "kubernetes.io/x": supported values: "storage""#)],
        ),
        (
            &format!(r#"@status {resources}={{"a b":"1"}}"#),
            &[&format!(r#"{resources}: Invalid value: "a b": name part must…"#)],
        ),
        (
            &format!(r#"@status {resources}={{"storage":"-1"}}"#),
            &[&format!("{resources}[storage]: Invalid value: -1: must be a valid resource quantity")],
        ),
        (&format!(r#"@status {statuses}={{"storage":"NodeResizePending"}}"#), &[]),
        (
            &format!(r#"@status {statuses}={{"storage":"x"}}"#),
            &[&format!(r#"{statuses}: Unsupported value: "storage": supported values: {STATES}"#)],
        ),
    ]);
}

#[test]
fn what_is_empty_where_it_is_no_pointer_changes_no_claim() {
    sample().check_updates(&[
        (r#"spec.selector={};spec.volumeName="""#, &["spec: Forbidden: spec is immutable…"]),
        (r#"spec.volumeName="""#, &[]),
        (r#"!spec.dataSource={"kind":"PersistentVolumeClaim","name":"x"} => spec.dataSourceRef.apiGroup=null"#, &[]),
    ]);
}
