//! MutatingAdmissionPolicies: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingAdmissionPolicy",
        json!({
            "metadata": {
                "name": "mp"
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
                "mutations": [
                    {
                        "jsonPatch": {
                            "expression": "[JSONPatch{op: \"test\", path: \"/a\", value: 1}]"
                        },
                        "patchType": "JSONPatch"
                    }
                ],
                "reinvocationPolicy": "Never"
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
                "name": "mp"
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
                "mutations": [
                    {
                        "jsonPatch": {
                            "expression": "[JSONPatch{op: \"test\", path: \"/a\", value: 1}]"
                        },
                        "patchType": "JSONPatch"
                    }
                ],
                "reinvocationPolicy": "Never"
            }
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        ("spec=null", &["spec.matchConstraints: Required value", "spec.mutations: Required value: mutations must contain at least one item", "spec.reinvocationPolicy: Required value"]),
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
        (r#"spec.matchConstraints.resourceRules.0.operations=["DELETE"]"#, &[r#"spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE""#]),
        (r#"spec.matchConstraints.resourceRules.0.operations=["X"]"#, &[r#"spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: "X": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#, r#"spec.matchConstraints.resourceRules.operations: Unsupported value: "X": supported values: "*", "CONNECT", "CREATE", "UPDATE""#]),
        ("spec.matchConstraints.excludeResourceRules=[{}]", &["spec.matchConstraints.excludeResourceRules[0].operations: Required value", "spec.matchConstraints.excludeResourceRules[0].apiGroups: Required value", "spec.matchConstraints.excludeResourceRules[0].apiVersions: Required value", "spec.matchConstraints.excludeResourceRules[0].resources: Required value"]),
        (r#"spec.matchConstraints.resourceRules.0.resources=["*","a"]"#, &[r#"spec.matchConstraints.resourceRules[0].resources: Invalid value: ["*","a"]: if '*' is present, must not specify other resources without subresources"#]),
        (r#"spec.matchConditions=[{"name":"","expression":""}]"#, &["spec.matchConditions[0].expression: Required value", "spec.matchConditions[0].name: Required value"]),
        (r#"spec.matchConditions=[{"name":"a","expression":"true"},{"name":"a","expression":"true"}]"#, &[r#"spec.matchConditions[1].name: Duplicate value: "a""#]),
        (r#"spec.variables=[{"name":"","expression":""}]"#, &["spec.variables[0].name: Required value: name is not specified", "spec.variables[0].expression: Required value: expression is not specified"]),
        (r#"spec.variables=[{"name":"a-b","expression":"1"}]"#, &[r#"spec.variables[0].name: Invalid value: "a-b": must be a valid CEL identifier"#]),
        (r#"spec.variables=[{"name":"in","expression":"1"}]"#, &[r#"spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier"#]),
        (r#"spec.variables=[{"name":"a","expression":"1"}]"#, &[]),
        (r#"metadata.name="a.static.k8s.io""#, &[]),
        ("spec.mutations=[]", &["spec.mutations: Required value: mutations must contain at least one item"]),
        ("spec.mutations=[{}]", &["spec.mutations[0].patchType: Required value"]),
        (r#"spec.mutations.0.patchType="X""#, &[r#"spec.mutations[0].patchType: Unsupported value: "X": supported values: "ApplyConfiguration", "JSONPatch""#]),
        ("spec.mutations.0.jsonPatch=null", &["spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch"]),
        ("spec.mutations.0.jsonPatch={}", &["spec.mutations[0].jsonPatch.expression: Required value"]),
        (r#"spec.mutations.0.patchType="ApplyConfiguration""#, &["spec.mutations[0].applyConfiguration: Required value: must be specified when patchType is ApplyConfiguration", r#"spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is ApplyConfiguration"#]),
        (r#"spec.mutations.0.applyConfiguration={"expression":"Object{}"}"#, &[r#"spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch"#]),
        (r#"spec.mutations=[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":" "}}]"#, &["spec.mutations[0].applyConfiguration.expression: Required value"]),
        (r#"spec.mutations=[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{}"}}]"#, &[]),
        (r#"spec.reinvocationPolicy="""#, &["spec.reinvocationPolicy: Required value"]),
        (r#"spec.reinvocationPolicy="X""#, &[r#"spec.reinvocationPolicy: Unsupported value: "X": supported values: "IfNeeded", "Never""#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.failurePolicy="Ignore""#, &[]),
        (r#"spec.reinvocationPolicy="X""#, &[r#"spec.reinvocationPolicy: Unsupported value: "X": supported values: "IfNeeded", "Never""#]),
        ("spec.mutations=[]", &["spec.mutations: Required value: mutations must contain at least one item"]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        (r#"spec.matchConditions=[{"name":"","expression":"true"}]"#, &["spec.matchConditions[0].name: Required value"]),
    ]);
}
