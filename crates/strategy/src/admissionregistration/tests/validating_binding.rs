//! ValidatingAdmissionPolicyBindings: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        json!({
            "metadata": {
                "name": "vb"
            },
            "spec": {
                "policyName": "vp",
                "validationActions": [
                    "Deny"
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
                "name": "vb"
            },
            "spec": {
                "policyName": "vp",
                "validationActions": [
                    "Deny"
                ]
            }
        })
    );
    assert_eq!(
        sample().created(r#"spec.matchResources={"resourceRules":[{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}"#),
        json!({
            "metadata": {
                "generation": 1,
                "name": "vb"
            },
            "spec": {
                "matchResources": {
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": {},
                    "objectSelector": {},
                    "resourceRules": [
                        {
                            "apiGroups": [
                                ""
                            ],
                            "apiVersions": [
                                "v1"
                            ],
                            "operations": [
                                "CREATE"
                            ],
                            "resources": [
                                "pods"
                            ],
                            "scope": "*"
                        }
                    ]
                },
                "policyName": "vp",
                "validationActions": [
                    "Deny"
                ]
            }
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        ("spec=null", &["spec.policyName: Required value", "spec.validationActions: Required value: at least one validation action is required"]),
        (r#"spec.policyName="""#, &["spec.policyName: Required value"]),
        (r#"spec.policyName="A_""#, &[r#"spec.policyName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphan…"#]),
        ("spec.paramRef={}", &["spec.paramRef: Required value: one of name or selector must be specified", "spec.paramRef.parameterNotFoundAction: Required value"]),
        (r#"spec.paramRef={"name":"a/b","parameterNotFoundAction":"Deny"}"#, &[r#"spec.paramRef.name: Invalid value: "a/b": may not contain '/'"#]),
        (r#"spec.paramRef={"name":"a","selector":{"matchLabels":{"a b":"c"}},"parameterNotFoundAction":"X"}"#, &["spec.paramRef.name: Forbidden: name and selector are mutually exclusive", r#"spec.paramRef.selector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric …"#, "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive", r#"spec.paramRef.parameterNotFoundAction: Unsupported value: "X": supported values: "Deny", "Allow""#]),
        (r#"spec.paramRef={"selector":{}}"#, &["spec.paramRef.parameterNotFoundAction: Required value"]),
        (r#"spec.paramRef={"name":"a","parameterNotFoundAction":""}"#, &["spec.paramRef.parameterNotFoundAction: Required value"]),
        (r#"spec.paramRef={"name":"a","parameterNotFoundAction":"Allow"}"#, &[]),
        ("spec.matchResources={}", &[]),
        (r#"spec.matchResources={"matchPolicy":"X"}"#, &[r#"spec.matchResources.matchPolicy: Unsupported value: "X": supported values: "Equivalent", "Exact""#]),
        (r#"spec.matchResources={"resourceRules":[{}]}"#, &["spec.matchResources.resourceRules[0].operations: Required value", "spec.matchResources.resourceRules[0].apiGroups: Required value", "spec.matchResources.resourceRules[0].apiVersions: Required value", "spec.matchResources.resourceRules[0].resources: Required value"]),
        (r#"spec.matchResources={"namespaceSelector":{"matchLabels":{"a":"b c"}}}"#, &[r#"spec.matchResources.namespaceSelector.matchLabels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and…"#]),
        (r#"spec.matchResources={"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}"#, &[]),
        (r#"metadata.name="a.static.k8s.io""#, &[]),
        ("spec.validationActions=[]", &["spec.validationActions: Required value: at least one validation action is required"]),
        (r#"spec.validationActions=["X"]"#, &[r#"spec.validationActions[0]: Unsupported value: "X": supported values: "Audit", "Deny", "Warn""#]),
        (r#"spec.validationActions=["Deny","Deny"]"#, &[r#"spec.validationActions[1]: Duplicate value: "Deny""#]),
        (r#"spec.validationActions=["Deny","Warn"]"#, &[r#"spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and hea…"#]),
        (r#"spec.validationActions=["Warn","Audit"]"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.policyName="other""#, &[]),
        (r#"spec.policyName="""#, &["spec.policyName: Required value"]),
        ("spec.validationActions=[]", &["spec.validationActions: Required value: at least one validation action is required"]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        ("spec.paramRef={}", &["spec.paramRef: Required value: one of name or selector must be specified", "spec.paramRef.parameterNotFoundAction: Required value"]),
    ]);
}
