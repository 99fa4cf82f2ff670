//! ValidatingAdmissionPolicies: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        json!({
            "metadata": {
                "name": "vp"
            },
            "spec": {
                "matchConstraints": {
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
                            ]
                        }
                    ]
                },
                "validations": [
                    {
                        "expression": "true"
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
                "name": "vp"
            },
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
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
                "validations": [
                    {
                        "expression": "true"
                    }
                ]
            },
            "status": {}
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        ("spec=null", &["spec.matchConstraints: Required value", "spec.validations: Required value: validations or auditAnnotations must contain at least one item", "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item"]),
        (r#"spec.failurePolicy="X""#, &[r#"spec.failurePolicy: Unsupported value: "X": supported values: "Fail", "Ignore""#]),
        ("spec.paramKind={}", &["spec.paramKind.apiVersion: Required value", "spec.paramKind.kind: Required value"]),
        (r#"spec.paramKind={"apiVersion":"a/b/c","kind":"A"}"#, &[r#"spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#]),
        (r#"spec.paramKind={"apiVersion":"A_/v1","kind":"a_"}"#, &[r#"spec.paramKind.apiVersion: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with…"#, r#"spec.paramKind.kind: Invalid value: "a_": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', sta…"#]),
        (r#"spec.paramKind={"apiVersion":"v1","kind":"ConfigMap"}"#, &[]),
        (r#"spec.paramKind={"apiVersion":"a/","kind":"A"}"#, &[r#"spec.paramKind.apiVersion: Invalid value: "a/": version must be specified"#]),
        (r#"spec.paramKind={"apiVersion":"1","kind":"1"}"#, &[r#"spec.paramKind.apiVersion: Invalid value: "1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end wit…"#, r#"spec.paramKind.kind: Invalid value: "1": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', star…"#]),
        (r#"spec.paramKind={"apiVersion":"/","kind":"A"}"#, &[r#"spec.paramKind.apiVersion: Invalid value: "/": version must be specified"#]),
        ("spec.matchConstraints=null", &["spec.matchConstraints: Required value"]),
        ("spec.matchConstraints={}", &["spec.matchConstraints.resourceRules: Required value"]),
        (r#"spec.matchConstraints.matchPolicy="X""#, &[r#"spec.matchConstraints.matchPolicy: Unsupported value: "X": supported values: "Equivalent", "Exact""#]),
        (r#"spec.matchConstraints.namespaceSelector={"matchLabels":{"a b":"c"}}"#, &[r#"spec.matchConstraints.namespaceSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with…"#]),
        (r#"spec.matchConstraints.objectSelector={"matchExpressions":[{"key":"a","operator":"In"}]}"#, &["spec.matchConstraints.objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
        (r#"spec.matchConstraints.resourceRules.0.resourceNames=["a/b","c","c"]"#, &[r#"spec.matchConstraints.resourceRules[0].resourceNames[0]: Invalid value: "a/b": may not contain '/'"#, r#"spec.matchConstraints.resourceRules[0].resourceNames[2]: Duplicate value: "c""#]),
        ("spec.matchConstraints.resourceRules.0.operations=[]", &["spec.matchConstraints.resourceRules[0].operations: Required value"]),
        (r#"spec.matchConstraints.resourceRules.0.operations=["DELETE"]"#, &[]),
        (r#"spec.matchConstraints.resourceRules.0.operations=["X"]"#, &[r#"spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: "X": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#]),
        ("spec.matchConstraints.excludeResourceRules=[{}]", &["spec.matchConstraints.excludeResourceRules[0].operations: Required value", "spec.matchConstraints.excludeResourceRules[0].apiGroups: Required value", "spec.matchConstraints.excludeResourceRules[0].apiVersions: Required value", "spec.matchConstraints.excludeResourceRules[0].resources: Required value"]),
        (r#"spec.matchConstraints.resourceRules.0.resources=["*","a"]"#, &[r#"spec.matchConstraints.resourceRules[0].resources: Invalid value: ["*","a"]: if '*' is present, must not specify other resources without subresources"#]),
        (r#"spec.matchConditions=[{"name":"","expression":""}]"#, &["spec.matchConditions[0].expression: Required value", "spec.matchConditions[0].name: Required value"]),
        (r#"spec.matchConditions=[{"name":"a","expression":"true"},{"name":"a","expression":"true"}]"#, &[r#"spec.matchConditions[1].name: Duplicate value: "a""#]),
        (r#"spec.variables=[{"name":"","expression":""}]"#, &["spec.variables[0].name: Required value: name is not specified", "spec.variables[0].expression: Required value: expression is not specified"]),
        (r#"spec.variables=[{"name":"a-b","expression":"1"}]"#, &[r#"spec.variables[0].name: Invalid value: "a-b": must be a valid CEL identifier"#]),
        (r#"spec.variables=[{"name":"in","expression":"1"}]"#, &[r#"spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier"#]),
        (r#"spec.variables=[{"name":"a","expression":"1"}]"#, &[]),
        (r#"metadata.name="a.static.k8s.io""#, &[]),
        ("spec.validations=[]", &["spec.validations: Required value: validations or auditAnnotations must contain at least one item", "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item"]),
        (r#"spec.validations=[{"expression":""}]"#, &["spec.validations[0].expression: Required value: expression is not specified"]),
        (r#"spec.validations=[{"expression":"true","message":" "}]"#, &[r#"spec.validations[0].message: Invalid value: " ": must be non-empty if specified"#]),
        (r#"spec.validations=[{"expression":"true","message":"a\nb"}]"#, &[r#"spec.validations[0].message: Invalid value: "a\nb": must not contain line breaks"#]),
        (r#"spec.validations=[{"expression":"true","messageExpression":" "}]"#, &[r#"spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified"#]),
        (r#"spec.validations=[{"expression":"true","reason":"X"}]"#, &[r#"spec.validations[0].reason: Unsupported value: "X": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge""#]),
        (r#"spec.validations=[{"expression":"true","reason":"Forbidden"}]"#, &[]),
        (r#"spec.validations=[];spec.auditAnnotations=[{"key":"a","valueExpression":"'a'"}]"#, &[]),
        (r#"spec.auditAnnotations=[{"key":"","valueExpression":""}]"#, &[r#"spec.auditAnnotations[0].key: Invalid value: "vp/": name part must be non-empty"#, r#"spec.auditAnnotations[0].key: Invalid value: "vp/": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric charac…"#, "spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified"]),
        (r#"spec.auditAnnotations=[{"key":"a","valueExpression":"'a'"},{"key":"a","valueExpression":"'a'"}]"#, &[r#"spec.auditAnnotations[1].key: Duplicate value: "a""#]),
        (r#"spec.auditAnnotations=[{"key":"a b","valueExpression":"'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'"}]"#, &[r#"spec.auditAnnotations[0].key: Invalid value: "vp/a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric cha…"#, "spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length"]),
        (r#"spec.auditAnnotations=[{"key": "k0", "valueExpression": "'a'"}, {"key": "k1", "valueExpression": "'a'"}, {"key": "k2", "valueExpression": "'a'"}, {"key": "k3", "valueExpression": "'a'"}, {"key": "k4", "valueExpression": "'a'"}, {"key": "k5", "valueExpression": "'a'"}, {"key": "k6", "valueExpression": "'a'"}, {"key": "k7", "valueExpression": "'a'"}, {"key": "k8", "valueExpression": "'a'"}, {"key": "k9", "valueExpression": "'a'"}, {"key": "k10", "valueExpression": "'a'"}, {"key": "k11", "valueExpression": "'a'"}, {"key": "k12", "valueExpression": "'a'"}, {"key": "k13", "valueExpression": "'a'"}, {"key": "k14", "valueExpression": "'a'"}, {"key": "k15", "valueExpression": "'a'"}, {"key": "k16", "valueExpression": "'a'"}, {"key": "k17", "valueExpression": "'a'"}, {"key": "k18", "valueExpression": "'a'"}, {"key": "k19", "valueExpression": "'a'"}, {"key": "k20", "valueExpression": "'a'"}]"#, &[r#"spec.auditAnnotations: Invalid value: [{"Key":"k0","ValueExpression":"'a'"},{"Key":"k1","ValueExpression":"'a'"},{"Key":"k2","ValueExpression":"'a'"},{"Key":"k3","ValueEx…"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.failurePolicy="Ignore""#, &[]),
        (r#"spec.failurePolicy="X""#, &[r#"spec.failurePolicy: Unsupported value: "X": supported values: "Fail", "Ignore""#]),
        ("spec.validations=[]", &["spec.validations: Required value: validations or auditAnnotations must contain at least one item", "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item"]),
        (r#"spec.matchConditions=[{"name":"","expression":"true"}]"#, &["spec.matchConditions[0].name: Required value"]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        ("spec.matchConstraints=null", &["spec.matchConstraints: Required value"]),
        (r#"@status spec.failurePolicy="X""#, &[]),
        ("@status status.conditions=[{}]", &[r#"status.conditions[0].type: Invalid value: "": name part must be non-empty"#, r#"status.conditions[0].type: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e…"#, r#"status.conditions[0].status: Unsupported value: "": supported values: "False", "True", "Unknown""#, "status.conditions[0].lastTransitionTime: Required value", "status.conditions[0].reason: Required value"]),
        (r#"@status status.conditions=[{"type":"A","status":"True","reason":"R","lastTransitionTime":"2026-01-01T00:00:00Z","message":""},{"type":"A","status":"X","reason":"a b","observedGeneration":-1}]"#, &[r#"status.conditions[1].type: Duplicate value: "A""#, r#"status.conditions[1].status: Unsupported value: "X": supported values: "False", "True", "Unknown""#, "status.conditions[1].observedGeneration: Invalid value: -1: must be greater than or equal to zero", "status.conditions[1].lastTransitionTime: Required value", r#"status.conditions[1].reason: Invalid value: "a b": a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or …"#]),
        (r#"@status status.typeChecking={"expressionWarnings":[{"fieldRef":"","warning":""}]}"#, &["status.typeChecking.expressionWarnings[0].warning: Required value", "status.typeChecking.expressionWarnings[0].fieldRef: Required value"]),
        (r#"@status status.typeChecking={"expressionWarnings":[{"fieldRef":"spec.validations[0].expression","warning":"x"}]}"#, &[]),
        (r#"@status status.typeChecking={"expressionWarnings":[{"fieldRef":"$.spec['a'][*]","warning":"x"},{"fieldRef":"$","warning":"x"}]}"#, &[]),
        (r#"@status status.typeChecking={"expressionWarnings":[{"fieldRef":" spec[","warning":"x"}]}"#, &[r#"status.typeChecking.expressionWarnings[0].fieldRef: Invalid value: "spec[": invalid JSONPath: unterminated array"#]),
        (r#"@status metadata.labels={"a b":"c"}"#, &[]),
    ]);
}
