//! CSIStorageCapacities: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        json!({"metadata": {"name": "csc", "namespace": "default"}, "storageClassName": "x"}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({"metadata": {"name": "csc", "namespace": "default"}, "storageClassName": "x"})
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        (r#"storageClassName="""#, &[r#"storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and…"#]),
        ("storageClassName=null", &[r#"storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and…"#]),
        (r#"storageClassName="A""#, &[r#"storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start an…"#]),
        (r#"capacity="-1""#, &[r#"capacity: Invalid value: "-1": must be greater than or equal to 0"#]),
        (r#"capacity="1Gi""#, &[]),
        (r#"capacity="0""#, &[]),
        (r#"maximumVolumeSize="-1""#, &[]),
        (r#"nodeTopology={"matchLabels":{"a b":"c"}}"#, &[r#"nodeTopology.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"nodeTopology={"matchLabels":{"a":"b c"}}"#, &[r#"nodeTopology.matchLabels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must…"#]),
        (r#"nodeTopology={"matchExpressions":[{"key":"a","operator":"X"}]}"#, &[r#"nodeTopology.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator"#]),
        (r#"nodeTopology={"matchExpressions":[{"key":"a","operator":"In"}]}"#, &["nodeTopology.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
        ("nodeTopology={}", &[]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"metadata.namespace="default";metadata.name="""#, &["metadata.name: Required value: name or generateName is required"]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"storageClassName="y""#, &[r#"storageClassName: Invalid value: "y": field is immutable"#]),
        (r#"storageClassName="""#, &[r#"storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and…"#, r#"storageClassName: Invalid value: "": field is immutable"#]),
        (r#"capacity="2Gi""#, &[]),
        (r#"capacity="-1""#, &[r#"capacity: Invalid value: "-1": must be greater than or equal to 0"#]),
        (r#"nodeTopology={"matchLabels":{"a":"b"}}"#, &[r#"nodeTopology: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable"#]),
        ("nodeTopology={}", &["nodeTopology: Invalid value: {}: field is immutable"]),
        (r#"!nodeTopology={"matchLabels":{"a":"b"}} => nodeTopology=null"#, &["nodeTopology: Invalid value: null: field is immutable"]),
        (r#"!nodeTopology={"matchLabels":{"a":"b"}} => nodeTopology={"matchExpressions":[{"key":"z","operator":"Exists"}]}"#, &[r#"nodeTopology: Invalid value: {"matchExpressions":[{"key":"z","operator":"Exists"}]}: field is immutable"#]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#, r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"maximumVolumeSize="1Gi""#, &[]),
    ]);
}
