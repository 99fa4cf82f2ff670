//! ConfigMaps: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "ConfigMap",
        json!({"metadata": {"name": "cm", "namespace": "default"}, "data": {"a": "b"}}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({"data": {"a": "b"}, "metadata": {"name": "cm", "namespace": "default"}})
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"data={"a/b":"c"}"#, &[r#"data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'ke…"#]),
        (r#"data={"..":"c"}"#, &[r#"data[..]: Invalid value: "..": must not be '..'"#]),
        (r#"binaryData={"a":"YQ=="}"#, &[r#"data[a]: Invalid value: "a": duplicate of key present in binaryData"#]),
        (r#"data={"":"x"}"#, &[r#"data[]: Invalid value: "": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name…"#]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
        (r#"metadata.name="""#, &["metadata.name: Required value: name or generateName is required"]),
        (r#"binaryData={"a b":"YQ=="}"#, &[r#"binaryData[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  …"#]),
        ("immutable=true", &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"data={"c":"d"}"#, &[]),
        ("immutable=true", &[]),
        (
            r#"!immutable=true => data={"c":"d"}"#,
            &["data: Forbidden: field is immutable when `immutable` is set"],
        ),
        (
            "!immutable=true => immutable=null",
            &["immutable: Forbidden: field is immutable when `immutable` is set"],
        ),
        (
            r#"!immutable=true => binaryData={"x":"YQ=="}"#,
            &["binaryData: Forbidden: field is immutable when `immutable` is set"],
        ),
        (
            r#"!immutable=true => data={"a":"b","c.d":""}"#,
            &["data: Forbidden: field is immutable when `immutable` is set"],
        ),
        (r#"!immutable=true => metadata.labels={"a":"b"}"#, &[]),
    ]);
}
