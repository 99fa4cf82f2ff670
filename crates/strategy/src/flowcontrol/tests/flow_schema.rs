//! FlowSchemas: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "FlowSchema",
        json!({
            "metadata": {
                "name": "fs"
            },
            "spec": {
                "priorityLevelConfiguration": {
                    "name": "global-default"
                },
                "rules": [
                    {
                        "resourceRules": [
                            {
                                "apiGroups": [
                                    ""
                                ],
                                "namespaces": [
                                    "*"
                                ],
                                "resources": [
                                    "pods"
                                ],
                                "verbs": [
                                    "get"
                                ]
                            }
                        ],
                        "subjects": [
                            {
                                "kind": "User",
                                "user": {
                                    "name": "u"
                                }
                            }
                        ]
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
                "name": "fs"
            },
            "spec": {
                "matchingPrecedence": 1000,
                "priorityLevelConfiguration": {
                    "name": "global-default"
                },
                "rules": [
                    {
                        "resourceRules": [
                            {
                                "apiGroups": [
                                    ""
                                ],
                                "namespaces": [
                                    "*"
                                ],
                                "resources": [
                                    "pods"
                                ],
                                "verbs": [
                                    "get"
                                ]
                            }
                        ],
                        "subjects": [
                            {
                                "kind": "User",
                                "user": {
                                    "name": "u"
                                }
                            }
                        ]
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
        ("spec=null", &["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"]),
        ("spec.rules=null", &[]),
        ("spec.matchingPrecedence=-1", &["spec.matchingPrecedence: Invalid value: -1: must be a positive value"]),
        ("spec.matchingPrecedence=10001", &["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"]),
        ("spec.matchingPrecedence=1", &["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"]),
        ("spec.matchingPrecedence=2", &[]),
        (r#"spec.distinguisherMethod={"type":"X"}"#, &[r#"spec.distinguisherMethod.type: Unsupported value: {"Type":"X"}: supported values: "ByNamespace", "ByUser""#]),
        (r#"spec.distinguisherMethod={"type":"ByUser"}"#, &[]),
        ("spec.distinguisherMethod={}", &[r#"spec.distinguisherMethod.type: Unsupported value: {"Type":""}: supported values: "ByNamespace", "ByUser""#]),
        (r#"spec.priorityLevelConfiguration.name="""#, &["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"]),
        (r#"spec.priorityLevelConfiguration.name="A_""#, &[r#"spec.priorityLevelConfiguration.name: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start a…"#]),
        ("spec.rules.0.subjects=[]", &["spec.rules[0].subjects: Required value: subjects must contain at least one value"]),
        ("spec.rules.0.subjects=[];spec.rules.0.resourceRules=[]", &["spec.rules[0].subjects: Required value: subjects must contain at least one value", "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty"]),
        ("spec.rules=[{}]", &["spec.rules[0].subjects: Required value: subjects must contain at least one value", "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty"]),
        (r#"spec.rules.0.subjects.0.kind="X""#, &[r#"spec.rules[0].subjects[0].kind: Unsupported value: "X": supported values: "Group", "ServiceAccount", "User""#]),
        (r#"spec.rules.0.subjects.0={"kind":"ServiceAccount"}"#, &["spec.rules[0].subjects[0].serviceAccount: Required value: serviceAccount is required when subject kind is 'ServiceAccount'"]),
        (r#"spec.rules.0.subjects.0={"kind":"User"}"#, &["spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'"]),
        (r#"spec.rules.0.subjects.0={"kind":"Group"}"#, &["spec.rules[0].subjects[0].group: Required value: group is required when subject kind is 'Group'"]),
        (r#"spec.rules.0.subjects.0={"kind":"ServiceAccount","serviceAccount":{"name":"","namespace":""},"user":{"name":"a"},"group":{"name":"b"}}"#, &["spec.rules[0].subjects[0].serviceAccount.name: Required value", "spec.rules[0].subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account", "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'", "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'"]),
        (r#"spec.rules.0.subjects.0={"kind":"User","serviceAccount":{"name":"a","namespace":"b"},"user":{"name":""},"group":{"name":"b"}}"#, &["spec.rules[0].subjects[0].user.name: Required value", "spec.rules[0].subjects[0].serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'", "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'"]),
        (r#"spec.rules.0.subjects.0={"kind":"Group","serviceAccount":{"name":"a","namespace":"b"},"user":{"name":"a"},"group":{"name":""}}"#, &["spec.rules[0].subjects[0].group.name: Required value", "spec.rules[0].subjects[0].serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'", "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'"]),
        (r#"spec.rules.0.subjects.0={"kind":"ServiceAccount","serviceAccount":{"name":"*","namespace":"b"}}"#, &[]),
        (r#"spec.rules.0.subjects.0={"kind":"ServiceAccount","serviceAccount":{"name":"A","namespace":"B"}}"#, &[r#"spec.rules[0].subjects[0].serviceAccount.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must…"#, r#"spec.rules[0].subjects[0].serviceAccount.namespace: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must sta…"#]),
        ("spec.rules.0.resourceRules.0.verbs=[]", &["spec.rules[0].resourceRules[0].verbs: Required value: verbs must contain at least one value"]),
        (r#"spec.rules.0.resourceRules.0.verbs=["*","get"]"#, &[r#"spec.rules[0].resourceRules[0].verbs: Invalid value: ["*","get"]: if '*' is present, must not specify other verbs"#]),
        (r#"spec.rules.0.resourceRules.0.verbs=["x"]"#, &[r#"spec.rules[0].resourceRules[0].verbs: Unsupported value: ["x"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watc…"#]),
        ("spec.rules.0.resourceRules.0.apiGroups=[]", &["spec.rules[0].resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group"]),
        (r#"spec.rules.0.resourceRules.0.apiGroups=["*","a"]"#, &[r#"spec.rules[0].resourceRules[0].apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other api groups"#]),
        ("spec.rules.0.resourceRules.0.resources=[]", &["spec.rules[0].resourceRules[0].resources: Required value: resource rules must supply at least one resource"]),
        (r#"spec.rules.0.resourceRules.0.resources=["*","a"]"#, &[r#"spec.rules[0].resourceRules[0].resources: Invalid value: ["*","a"]: if '*' is present, must not specify other resources"#]),
        ("spec.rules.0.resourceRules.0.namespaces=[]", &["spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace"]),
        ("spec.rules.0.resourceRules.0.namespaces=[];spec.rules.0.resourceRules.0.clusterScope=true", &[]),
        (r#"spec.rules.0.resourceRules.0.namespaces=["*","a"]"#, &[r#"spec.rules[0].resourceRules[0].namespaces: Invalid value: ["*","a"]: if '*' is present, must not specify other namespaces"#]),
        (r#"spec.rules.0.resourceRules.0.namespaces=["A"]"#, &[r#"spec.rules[0].resourceRules[0].namespaces[0]: Invalid value: "A": each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must consist of low…"#]),
        ("spec.rules.0.nonResourceRules=[{}]", &["spec.rules[0].nonResourceRules[0].verbs: Required value: verbs must contain at least one value", "spec.rules[0].nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must contain at least one value"]),
        (r#"spec.rules.0.nonResourceRules=[{"verbs":["*","get"],"nonResourceURLs":["*","/a"]}]"#, &[r#"spec.rules[0].nonResourceRules[0].verbs: Invalid value: ["*","get"]: if '*' is present, must not specify other verbs"#, r#"spec.rules[0].nonResourceRules[0].nonResourceURLs: Invalid value: ["*","/a"]: if '*' is present, must not specify other non-resource URLs"#]),
        (r#"spec.rules.0.nonResourceRules=[{"verbs":["use"],"nonResourceURLs":["","/","a","/ a","/a//b","/*/a","/a/*","/a*","/*/*"]}]"#, &[r#"spec.rules[0].nonResourceRules[0].verbs: Unsupported value: ["use"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", …"#, r#"spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "": must not be empty"#, r#"spec.rules[0].nonResourceRules[0].nonResourceURLs[2]: Invalid value: "a": must start with slash"#, r#"spec.rules[0].nonResourceRules[0].nonResourceURLs[3]: Invalid value: "/ a": must not contain white-space"#, r#"spec.rules[0].nonResourceRules[0].nonResourceURLs[4]: Invalid value: "/a//b": must not contain double slash"#, r#"spec.rules[0].nonResourceRules[0].nonResourceURLs[5]: Invalid value: "/*/a": wildcard can only do suffix matching"#, r#"spec.rules[0].nonResourceRules[0].nonResourceURLs[7]: Invalid value: "/a*": wildcard can only do suffix matching"#, r#"spec.rules[0].nonResourceRules[0].nonResourceURLs[8]: Invalid value: "/*/*": wildcard can only do suffix matching"#]),
        (r#"metadata.name="catch-all";spec.matchingPrecedence=5"#, &[r#"spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"global-default"},"MatchingPrecedence":5,"DistinguisherMethod":null,"Rules":[{"Subjects":[{"Kind":"User","User"…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.matchingPrecedence=5", &[]),
        ("spec.matchingPrecedence=0", &[]),
        ("spec.rules=[{}]", &["spec.rules[0].subjects: Required value: subjects must contain at least one value", "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty"]),
        (r#"@status status.conditions=[{"type":""}]"#, &["status.conditions[0].type: Required value"]),
        (r#"@status status.conditions=[{"type":"A"},{"type":"A"}]"#, &[r#"status.conditions[1].type: Duplicate value: "A""#]),
        ("@status spec.matchingPrecedence=-1", &[]),
        (r#"@status metadata.labels={"a b":"c"}"#, &[]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        (r#"spec.priorityLevelConfiguration.name="""#, &["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"]),
        (r#"spec.distinguisherMethod={"type":"byuser"}"#, &[r#"spec.distinguisherMethod.type: Unsupported value: {"Type":"byuser"}: supported values: "ByNamespace", "ByUser""#]),
    ]);
}
