//! DeviceClasses: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

pub(super) fn sample() -> Sample {
    Sample::new(
        "resource.k8s.io",
        "v1",
        "DeviceClass",
        json!({
            "metadata": {
                "name": "dc"
            },
            "spec": {
                "selectors": [
                    {
                        "cel": {
                            "expression": "device.driver == \"d\""
                        }
                    }
                ]
            }
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {
                "generation": 1,
                "name": "dc"
            },
            "spec": {
                "selectors": [
                    {
                        "cel": {
                            "expression": "device.driver == \"d\""
                        }
                    }
                ]
            }
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        (r#"metadata.generateName="A_-""#, &[]),
        ("spec={}", &[]),
        ("spec.selectors=[{}]", &["spec.selectors[0].cel: Required value"]),
        (r#"spec.selectors=[{"cel":{"expression":""}}]"#, &[r#"spec.selectors[0].cel.expression: Invalid value: "": compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!…"#]),
        ("spec.config=[{}]", &["spec.config[0].opaque: Required value"]),
        (r#"spec.config=[{"opaque":{"driver":"","parameters":{}}}]"#, &["spec.config[0].opaque.driver: Required value"]),
        (r#"spec.config=[{"opaque":{"driver":"A_","parameters":{"a":1}}}]"#, &[r#"spec.config[0].opaque.driver: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end w…"#]),
        (r#"spec.config=[{"opaque":{"driver":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","parameters":{"a":1}}}]"#, &["spec.config[0].opaque.driver: Too long: may not be more than 63 bytes"]),
        (r#"spec.config=[{"opaque":{"driver":"d.com","parameters":[1]}}]"#, &[r#"spec.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object"#]),
        (r#"spec.config=[{"opaque":{"driver":"d.com"}}]"#, &["spec.config[0].opaque.parameters: Required value"]),
        (r#"spec.extendedResourceName="x""#, &[r#"spec.extendedResourceName: Invalid value: "x": must be a valid extended resource name"#]),
        (r#"spec.extendedResourceName="a.com/b""#, &[]),
        (r#"spec.extendedResourceName="kubernetes.io/b""#, &[r#"spec.extendedResourceName: Invalid value: "kubernetes.io/b": must be a valid extended resource name"#]),
        (r#"spec.extendedResourceName="requests.a.com/b""#, &[r#"spec.extendedResourceName: Invalid value: "requests.a.com/b": must be a valid extended resource name"#]),
        (r#"spec.extendedResourceName="""#, &[r#"spec.extendedResourceName: Invalid value: "": must be a valid extended resource name"#]),
        (r#"spec.extendedResourceName="a/b/c""#, &[r#"spec.extendedResourceName: Invalid value: "a/b/c": must be a valid extended resource name"#]),
        (r#"spec.extendedResourceName="a.com/b c""#, &[r#"spec.extendedResourceName: Invalid value: "a.com/b c": must be a valid extended resource name"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        ("spec=null", &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.selectors=[]", &[]),
        ("spec.selectors=[{}]", &["spec.selectors[0].cel: Required value"]),
        ("spec.config=[{}]", &["spec.config[0].opaque: Required value"]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        (r#"spec.extendedResourceName="x""#, &[r#"spec.extendedResourceName: Invalid value: "x": must be a valid extended resource name"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#, r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
    ]);
}
