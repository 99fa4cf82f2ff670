//! RuntimeClasses: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new("node.k8s.io", "v1", "RuntimeClass", json!({"metadata": {"name": "rc"}, "handler": "runc"}))
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(sample().created(""), json!({"metadata": {"name": "rc"}, "handler": "runc"}));
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"handler="""#, &["handler: Required value"]),
        ("handler=null", &["handler: Required value"]),
        (r#"handler="A""#, &[r#"handler: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#]),
        (r#"handler="a.b""#, &[r#"handler: Invalid value: "a.b": must not contain dots"#]),
        (r#"handler="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &[r#"handler: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 characters"#]),
        (r#"metadata.name="A_""#, &[r#"metadata.name: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and …"#]),
        (r#"metadata.name="""#, &["metadata.name: Required value: name or generateName is required"]),
        ("overhead={}", &[]),
        (r#"overhead={"podFixed":{"cpu":"-1"}}"#, &[r#"overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0"#]),
        (r#"overhead={"podFixed":{"a b":"1"}}"#, &[r#"overhead.limits[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#, r#"overhead.limits[a b]: Invalid value: "a b": must be a standard resource for containers"#]),
        (r#"overhead={"podFixed":{"foo":"1"}}"#, &[r#"overhead.limits[foo]: Invalid value: "foo": must be a standard resource type or fully qualified"#, r#"overhead.limits[foo]: Invalid value: "foo": must be a standard resource for containers"#]),
        (r#"overhead={"podFixed":{"cpu":"1","memory":"1Mi"}}"#, &[]),
        (r#"scheduling={"nodeSelector":{"a b":"c"}}"#, &[r#"scheduling.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"scheduling={"nodeSelector":{"a":"b c"}}"#, &[r#"scheduling.nodeSelector: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must …"#]),
        (r#"scheduling={"tolerations":[{"operator":"X"}]}"#, &[r#"scheduling.tolerations[0].operator: Invalid value: "X": operator must be Exists when `key` is empty, which means "match all values and all keys""#, r#"scheduling.tolerations[0].operator: Unsupported value: "X": supported values: "Equal", "Exists""#]),
        (r#"scheduling={"tolerations":[{"key":"a","operator":"Exists"},{"key":"a","operator":"Exists"}]}"#, &[r#"scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}"#]),
        (r#"scheduling={"tolerations":[{"key":"a","operator":"Exists","value":"x"}]}"#, &[r#"scheduling.tolerations[0].operator: Invalid value: "x": value must be empty when `operator` is 'Exists'"#]),
        (r#"scheduling={"tolerations":[{"key":"a","effect":"X"}]}"#, &[r#"scheduling.tolerations[0].effect: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#]),
        (r#"scheduling={"tolerations":[{"key":"a","operator":"Exists","tolerationSeconds":5}]}"#, &[r#"scheduling.tolerations[0].effect: Invalid value: "": effect must be 'NoExecute' when `tolerationSeconds` is set"#]),
        (r#"scheduling={"tolerations":[{"key":"a","value":"b","effect":"NoSchedule"}]}"#, &[]),
        (r#"scheduling={"tolerations":[{"key":"a b","operator":"Exists"}]}"#, &[r#"scheduling.tolerations[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"metadata.finalizers=["x"]"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"handler="x""#, &[r#"handler: Invalid value: "x": field is immutable"#]),
        (r#"handler="""#, &["handler: Required value", r#"handler: Invalid value: "": field is immutable"#]),
        (r#"handler="A""#, &[r#"handler: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#, r#"handler: Invalid value: "A": field is immutable"#]),
        (r#"overhead={"podFixed":{"cpu":"1"}}"#, &[]),
        (r#"overhead={"podFixed":{"cpu":"-1"}}"#, &[r#"overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0"#]),
        (r#"scheduling={"tolerations":[{"operator":"X"}]}"#, &[r#"scheduling.tolerations[0].operator: Invalid value: "X": operator must be Exists when `key` is empty, which means "match all values and all keys""#, r#"scheduling.tolerations[0].operator: Unsupported value: "X": supported values: "Equal", "Exists""#]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[]),
    ]);
}
