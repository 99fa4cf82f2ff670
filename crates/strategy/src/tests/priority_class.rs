//! PriorityClasses: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new("scheduling.k8s.io", "v1", "PriorityClass", json!({"metadata": {"name": "pc"}, "value": 100}))
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "pc", "generation": 1},
            "value": 100,
            "preemptionPolicy": "PreemptLowerPriority",
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        (r#"metadata.name="system-x""#, &["metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-x is not a known system priority class"]),
        (r#"metadata.name="system-node-critical""#, &["metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of system-node-critical PriorityClass must be 2000001000"]),
        (r#"metadata.name="system-node-critical";value=2000001000;globalDefault=true"#, &["metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: globalDefault of system-node-critical PriorityClass must be false"]),
        ("value=1000000001", &["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]),
        ("value=1000000000", &[]),
        ("value=-5", &[]),
        (r#"preemptionPolicy="X""#, &[r#"preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never""#]),
        (r#"preemptionPolicy="""#, &["preemptionPolicy: Required value"]),
        (r#"preemptionPolicy="Never""#, &[]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"metadata.name="""#, &["metadata.name: Required value: name or generateName is required"]),
        (r#"metadata.annotations={"a b":"c"}"#, &[r#"metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"metadata.name="system-cluster-critical";value=1"#, &["metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of system-cluster-critical PriorityClass must be 2000000000"]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("value=101", &["value: Forbidden: may not be changed in an update."]),
        (r#"preemptionPolicy="Never""#, &[r#"preemptionPolicy: Invalid value: "Never": field is immutable"#]),
        (r#"description="x""#, &[]),
        ("globalDefault=true", &[]),
        (r#"value=2000000000;preemptionPolicy="X""#, &["value: Forbidden: may not be changed in an update.", r#"preemptionPolicy: Invalid value: "X": field is immutable"#]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        ("preemptionPolicy=null", &[]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        ("value=null", &["value: Forbidden: may not be changed in an update."]),
    ]);
}
