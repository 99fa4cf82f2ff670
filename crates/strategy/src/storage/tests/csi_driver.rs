//! CSIDrivers: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new("storage.k8s.io", "v1", "CSIDriver", json!({"metadata": {"name": "cd.example"}, "spec": {}}))
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "cd.example"},
            "spec": {
                "attachRequired": true,
                "podInfoOnMount": false,
                "volumeLifecycleModes": ["Persistent"],
                "storageCapacity": false,
                "fsGroupPolicy": "ReadWriteOnceWithFSType",
                "requiresRepublish": false,
                "seLinuxMount": false,
            },
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        (r#"metadata.name="a_b""#, &[r#"metadata.name: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and…"#]),
        ("spec=null", &[]),
        ("spec.attachRequired=false", &[]),
        (r#"spec.fsGroupPolicy="X""#, &[r#"spec.fsGroupPolicy: Unsupported value: "X": supported values: "File", "None", "ReadWriteOnceWithFSType""#]),
        (r#"spec.fsGroupPolicy="""#, &[r#"spec.fsGroupPolicy: Unsupported value: "": supported values: "File", "None", "ReadWriteOnceWithFSType""#]),
        (r#"spec.fsGroupPolicy="File""#, &[]),
        (r#"spec.tokenRequests=[{"audience":"a"},{"audience":"a"}]"#, &[r#"spec.tokenRequests[1].audience: Duplicate value: "a""#]),
        (r#"spec.tokenRequests=[{"audience":"a","expirationSeconds":5}]"#, &["spec.tokenRequests[0].expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes"]),
        (r#"spec.tokenRequests=[{"audience":"a","expirationSeconds":4294967297}]"#, &["spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"]),
        (r#"spec.tokenRequests=[{"audience":""},{"audience":""}]"#, &[r#"spec.tokenRequests[1].audience: Duplicate value: """#]),
        (r#"spec.volumeLifecycleModes=["X"]"#, &[r#"spec.volumeLifecycleModes: Unsupported value: "X": supported values: "Persistent", "Ephemeral""#]),
        (r#"spec.volumeLifecycleModes=["Ephemeral","Y","Z"]"#, &[r#"spec.volumeLifecycleModes: Unsupported value: "Y": supported values: "Persistent", "Ephemeral""#, r#"spec.volumeLifecycleModes: Unsupported value: "Z": supported values: "Persistent", "Ephemeral""#]),
        ("spec.nodeAllocatableUpdatePeriodSeconds=5", &["spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 5: must be greater than or equal to 10 seconds"]),
        ("spec.nodeAllocatableUpdatePeriodSeconds=10", &[]),
        ("spec.serviceAccountTokenInSecrets=true", &["spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no tokenRequests are specified"]),
        ("spec.serviceAccountTokenInSecrets=false", &["spec.serviceAccountTokenInSecrets: Invalid value: false: serviceAccountTokenInSecrets is set but no tokenRequests are specified"]),
        (r#"spec.serviceAccountTokenInSecrets=true;spec.tokenRequests=[{"audience":"a"}]"#, &[]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        ("spec.seLinuxMount=true", &[]),
        ("spec.preventPodSchedulingIfMissing=true", &[]),
        ("spec.requiresRepublish=true;spec.podInfoOnMount=true;spec.storageCapacity=true", &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.attachRequired=false", &["spec.attachedRequired: Invalid value: false: field is immutable"]),
        ("spec.attachRequired=null;spec.storageCapacity=true", &[]),
        (r#"spec.volumeLifecycleModes=["Ephemeral"]"#, &[r#"spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable"#]),
        (r#"spec.volumeLifecycleModes=["X"]"#, &[r#"spec.volumeLifecycleModes: Unsupported value: "X": supported values: "Persistent", "Ephemeral""#, r#"spec.volumeLifecycleModes: Invalid value: ["X"]: field is immutable"#]),
        ("spec.podInfoOnMount=true", &[]),
        (r#"spec.fsGroupPolicy="X""#, &[r#"spec.fsGroupPolicy: Unsupported value: "X": supported values: "File", "None", "ReadWriteOnceWithFSType""#]),
        (r#"spec.tokenRequests=[{"audience":"a"},{"audience":"a"}]"#, &[r#"spec.tokenRequests[1].audience: Duplicate value: "a""#]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        ("spec.serviceAccountTokenInSecrets=true", &["spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no tokenRequests are specified"]),
        ("spec.nodeAllocatableUpdatePeriodSeconds=9", &["spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds"]),
    ]);
}
