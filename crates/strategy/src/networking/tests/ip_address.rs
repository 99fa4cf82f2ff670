//! IPAddresses: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "networking.k8s.io",
        "v1",
        "IPAddress",
        json!({
            "metadata": {"name": "192.0.2.77"},
            "spec": {"parentRef": {"resource": "services", "name": "a", "namespace": "b"}},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "192.0.2.77"},
            "spec": {"parentRef": {"resource": "services", "namespace": "b", "name": "a"}},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="a""#, &[r#"metadata.name: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#]),
        (r#"metadata.name="010.1.1.1""#, &[r#"metadata.name: Invalid value: "010.1.1.1": must not have leading 0s"#]),
        (r#"metadata.name="2001:DB8::1""#, &[r#"metadata.name: Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")"#]),
        (r#"metadata.name="2001:db8::1""#, &[]),
        (r#"metadata.name="::ffff:1.2.3.4""#, &[r#"metadata.name: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address"#]),
        (r#"metadata.name="""#, &["metadata.name: Required value: name or generateName is required"]),
        ("spec=null", &["spec.parentRef: Required value"]),
        ("spec.parentRef=null", &["spec.parentRef: Required value"]),
        ("spec.parentRef={}", &["spec.parentRef.resource: Required value", "spec.parentRef.name: Required value"]),
        (r#"spec.parentRef={"resource":"a/b","name":".."}"#, &[r#"spec.parentRef.resource: Invalid value: "a/b": may not contain '/'"#, r#"spec.parentRef.name: Invalid value: "..": may not be '..'"#]),
        (r#"spec.parentRef={"group":"A_","resource":"a","name":"b"}"#, &[r#"spec.parentRef.group: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must sta…"#]),
        (r#"spec.parentRef={"resource":"a","name":"b","namespace":"a%b"}"#, &[r#"spec.parentRef.namespace: Invalid value: "a%b": may not contain '%'"#]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"spec.parentRef={"group":"apps","resource":"a","name":"b"}"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.parentRef.name="x""#, &[r#"spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"b","Name":"x"}: field is immutable"#]),
        ("spec.parentRef=null", &["spec.parentRef: Required value", "spec.parentRef: Invalid value: null: field is immutable"]),
        (r#"spec.parentRef.resource="""#, &["spec.parentRef.resource: Required value", r#"spec.parentRef: Invalid value: {"Group":"","Resource":"","Namespace":"b","Name":"a"}: field is immutable"#]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.labels={"a":"b"}"#, &[]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#, r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
    ]);
}
