//! StorageClasses: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "storage.k8s.io",
        "v1",
        "StorageClass",
        json!({"metadata": {"name": "st"}, "provisioner": "a.b/c"}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "st"},
            "provisioner": "a.b/c",
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        (r#"provisioner="""#, &["provisioner: Required value"]),
        ("provisioner=null", &["provisioner: Required value"]),
        (r#"provisioner="a b""#, &[r#"provisioner: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"provisioner="A/B""#, &[]),
        (r#"provisioner="a/b/c""#, &[r#"provisioner: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphan…"#]),
        (r#"parameters={"a":"b"}"#, &[]),
        (r#"parameters={"":"b"}"#, &[r#"parameters: Invalid value: "": field can not be empty."#]),
        (r#"reclaimPolicy="X""#, &[r#"reclaimPolicy: Unsupported value: "X": supported values: "Delete", "Retain""#]),
        (r#"reclaimPolicy="Recycle""#, &[r#"reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain""#]),
        (r#"reclaimPolicy="""#, &[]),
        (r#"reclaimPolicy="Retain""#, &[]),
        (r#"volumeBindingMode="X""#, &[r#"volumeBindingMode: Unsupported value: "X": supported values: "Immediate", "WaitForFirstConsumer""#]),
        (r#"volumeBindingMode="""#, &[r#"volumeBindingMode: Unsupported value: "": supported values: "Immediate", "WaitForFirstConsumer""#]),
        (r#"volumeBindingMode="WaitForFirstConsumer""#, &[]),
        (r#"mountOptions=["a","a"]"#, &[]),
        ("allowVolumeExpansion=false", &[]),
        (r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"a","values":[]}]}]"#, &["allowedTopologies[0].matchLabelExpressions[0].values: Required value"]),
        (r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"a","values":["x","x"]}]}]"#, &[r#"allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "x""#]),
        (r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"a b","values":["x"]}]}]"#, &[r#"allowedTopologies[0].matchLabelExpressions[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must …"#]),
        (r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"a","values":["x"]},{"key":"a","values":["y"]}]}]"#, &[r#"allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "a""#]),
        (r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"a","values":["x","y"]}]},{"matchLabelExpressions":[{"key":"a","values":["y","x"]}]}]"#, &[r#"allowedTopologies[1].matchLabelExpressions: Duplicate value: """#]),
        ("allowedTopologies=[{}]", &[r#"allowedTopologies[0].matchLabelExpressions: Duplicate value: """#]),
        ("allowedTopologies=[{},{}]", &[r#"allowedTopologies[0].matchLabelExpressions: Duplicate value: """#, r#"allowedTopologies[0].matchLabelExpressions: Duplicate value: """#, r#"allowedTopologies[1].matchLabelExpressions: Duplicate value: """#, r#"allowedTopologies[1].matchLabelExpressions: Duplicate value: """#, r#"allowedTopologies[1].matchLabelExpressions: Duplicate value: """#]),
        (r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"","values":["x"]}]}]"#, &[r#"allowedTopologies[0].matchLabelExpressions[0].key: Invalid value: "": name part must be non-empty"#, r#"allowedTopologies[0].matchLabelExpressions[0].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must sta…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"provisioner="x""#, &[r#"provisioner: Invalid value: "x": field is immutable"#]),
        (r#"provisioner="""#, &["provisioner: Required value", r#"provisioner: Invalid value: "": field is immutable"#]),
        (r#"parameters={"a":"b"}"#, &[r#"parameters: Invalid value: {"a":"b"}: field is immutable"#]),
        (r#"reclaimPolicy="Retain""#, &[r#"reclaimPolicy: Invalid value: "Retain": field is immutable"#]),
        (r#"reclaimPolicy="X""#, &[r#"reclaimPolicy: Unsupported value: "X": supported values: "Delete", "Retain""#, r#"reclaimPolicy: Invalid value: "X": field is immutable"#]),
        (r#"volumeBindingMode="WaitForFirstConsumer""#, &[r#"volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable"#]),
        ("volumeBindingMode=null", &[]),
        ("allowVolumeExpansion=true", &[]),
        (r#"mountOptions=["a"]"#, &[]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#, r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"a","values":[]}]}]"#, &["allowedTopologies[0].matchLabelExpressions[0].values: Required value"]),
        (r#"!parameters={"a":"b"} => parameters={"a":"c","b":"d"}"#, &[r#"parameters: Invalid value: {"a":"c","b":"d"}: field is immutable"#]),
        (r#"!parameters={"a":"b"} => parameters=null"#, &["parameters: Invalid value: null: field is immutable"]),
    ]);
}
