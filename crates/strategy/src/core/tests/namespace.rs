//! Namespaces: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new("", "v1", "Namespace", json!({"metadata": {"name": "nsx"}}))
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"labels": {"kubernetes.io/metadata.name": "nsx"}, "name": "nsx"},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="a.b""#, &[r#"metadata.name: Invalid value: "a.b": must not contain dots"#]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with a…"#]),
        (r#"metadata.namespace="x""#, &[]),
        (r#"spec.finalizers=["x"]"#, &[r#"spec.finalizers: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"spec.finalizers=["a/b"]"#, &[]),
        (r#"metadata.name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &[r#"metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 characters"#, r#"metadata.labels: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 bytes"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"metadata.labels={"a":"b"}"#, &[]),
        ("metadata.labels=null", &[]),
        (r#"spec.finalizers=["x"]"#, &[]),
        (r#"@status status.phase="Terminating""#, &[r#"status.Phase: Invalid value: "Terminating": may only be 'Active' if `deletionTimestamp` is empty"#]),
        (r#"@finalize spec.finalizers=["x"]"#, &[r#"spec.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        ("@finalize spec.finalizers=[]", &[]),
    ]);
}
