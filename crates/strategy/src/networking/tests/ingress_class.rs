//! IngressClasses: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "networking.k8s.io",
        "v1",
        "IngressClass",
        json!({"metadata": {"name": "ic"}, "spec": {"controller": "example.com/x"}}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({"metadata": {"name": "ic", "generation": 1}, "spec": {"controller": "example.com/x"}})
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"spec.controller="""#, &["spec.controller: Required value"]),
        ("spec.controller=null", &["spec.controller: Required value"]),
        (r#"spec.controller="x""#, &[r#"spec.controller: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")"#]),
        (r#"spec.controller="/x""#, &[r#"spec.controller: Invalid value: "/x": must be a domain-prefixed path (such as "acme.io/foo")"#]),
        (r#"spec.controller="A/x""#, &[r#"spec.controller: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and…"#]),
        (r#"spec.controller="a.b/x y""#, &[r#"spec.controller: Invalid value: "x y": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"#]),
        (r#"spec.controller="a/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb""#, &["spec.controller: Too long: may not be more than 250 bytes"]),
        ("spec=null", &["spec.controller: Required value"]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        ("spec.parameters={}", &["spec.parameters.kind: Required value", "spec.parameters.name: Required value"]),
        (r#"spec.parameters={"kind":"","name":""}"#, &["spec.parameters.kind: Required value", "spec.parameters.name: Required value"]),
        (r#"spec.parameters={"kind":"a/b","name":".."}"#, &[r#"spec.parameters.kind: Invalid value: "a/b": may not contain '/'"#, r#"spec.parameters.name: Invalid value: "..": may not be '..'"#]),
        (r#"spec.parameters={"apiGroup":"A_","kind":"X","name":"y"}"#, &[r#"spec.parameters.apiGroup: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must…"#]),
        (r#"spec.parameters={"kind":"X","name":"y"}"#, &[]),
        (r#"spec.parameters={"kind":"X","name":"y","scope":"Foo"}"#, &[r#"spec.parameters.scope: Unsupported value: "Foo": supported values: "Cluster", "Namespace""#]),
        (r#"spec.parameters={"kind":"X","name":"y","scope":""}"#, &[r#"spec.parameters.scope: Unsupported value: "": supported values: "Cluster", "Namespace""#]),
        (r#"spec.parameters={"kind":"X","name":"y","scope":"Namespace"}"#, &["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"]),
        (r#"spec.parameters={"kind":"X","name":"y","scope":"Namespace","namespace":"A"}"#, &[r#"spec.parameters.namespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#]),
        (r#"spec.parameters={"kind":"X","name":"y","scope":"Cluster","namespace":"a"}"#, &["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"]),
        (r#"spec.parameters={"kind":"X","name":"y","scope":"Namespace","namespace":"a"}"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.controller="example.com/y""#, &[r#"spec.controller: Invalid value: "example.com/y": field is immutable"#]),
        (r#"spec.controller="""#, &[r#"spec.controller: Invalid value: "": field is immutable"#, "spec.controller: Required value"]),
        (r#"spec.controller="x""#, &[r#"spec.controller: Invalid value: "x": field is immutable"#, r#"spec.controller: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")"#]),
        (r#"spec.parameters={"kind":"X","name":"y"}"#, &[]),
        (r#"spec.parameters={"kind":"","name":"y"}"#, &["spec.parameters.kind: Required value"]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#, r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
    ]);
}
