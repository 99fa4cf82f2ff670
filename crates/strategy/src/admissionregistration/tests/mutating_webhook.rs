//! MutatingWebhookConfigurations: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        json!({
            "metadata": {
                "name": "mw"
            },
            "webhooks": [
                {
                    "admissionReviewVersions": [
                        "v1"
                    ],
                    "clientConfig": {
                        "url": "https://h/p"
                    },
                    "name": "a.b.c",
                    "rules": [
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
                    ],
                    "sideEffects": "None"
                }
            ]
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
                "name": "mw"
            },
            "webhooks": [
                {
                    "admissionReviewVersions": [
                        "v1"
                    ],
                    "clientConfig": {
                        "url": "https://h/p"
                    },
                    "failurePolicy": "Fail",
                    "matchPolicy": "Equivalent",
                    "name": "a.b.c",
                    "namespaceSelector": {},
                    "objectSelector": {},
                    "reinvocationPolicy": "Never",
                    "rules": [
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
                    ],
                    "sideEffects": "None",
                    "timeoutSeconds": 10
                }
            ]
        })
    );
    assert_eq!(
        sample().created(r#"webhooks.0.clientConfig={"service":{"name":"a","namespace":"b"}}"#),
        json!({
            "metadata": {
                "generation": 1,
                "name": "mw"
            },
            "webhooks": [
                {
                    "admissionReviewVersions": [
                        "v1"
                    ],
                    "clientConfig": {
                        "service": {
                            "name": "a",
                            "namespace": "b",
                            "port": 443
                        }
                    },
                    "failurePolicy": "Fail",
                    "matchPolicy": "Equivalent",
                    "name": "a.b.c",
                    "namespaceSelector": {},
                    "objectSelector": {},
                    "reinvocationPolicy": "Never",
                    "rules": [
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
                    ],
                    "sideEffects": "None",
                    "timeoutSeconds": 10
                }
            ]
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        ("webhooks=null", &[]),
        (r#"webhooks.0.name="""#, &["webhooks[0].name: Required value"]),
        (r#"webhooks.0.name="A""#, &[r#"webhooks[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphan…"#]),
        (r#"webhooks.0.name="a.b""#, &[r#"webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by dots"#]),
        (r#"webhooks.+={"name": "a.b.c", "clientConfig": {"url": "https://h/p"}, "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}], "sideEffects": "None", "admissionReviewVersions": ["v1"]}"#, &[r#"webhooks[1].name: Duplicate value: "a.b.c""#]),
        ("webhooks.0.rules.0.operations=[]", &["webhooks[0].rules[0].operations: Required value"]),
        (r#"webhooks.0.rules.0.operations=["*","CREATE"]"#, &[r#"webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations"#]),
        (r#"webhooks.0.rules.0.operations=["X"]"#, &[r#"webhooks[0].rules[0].operations[0]: Unsupported value: "X": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#]),
        ("webhooks.0.rules.0.apiGroups=[]", &["webhooks[0].rules[0].apiGroups: Required value"]),
        (r#"webhooks.0.rules.0.apiGroups=["*","a"]"#, &[r#"webhooks[0].rules[0].apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other API groups"#]),
        ("webhooks.0.rules.0.apiVersions=[]", &["webhooks[0].rules[0].apiVersions: Required value"]),
        (r#"webhooks.0.rules.0.apiVersions=["*","v1"]"#, &[r#"webhooks[0].rules[0].apiVersions: Invalid value: ["*","v1"]: if '*' is present, must not specify other API versions"#]),
        (r#"webhooks.0.rules.0.apiVersions=[""]"#, &["webhooks[0].rules[0].apiVersions[0]: Required value"]),
        ("webhooks.0.rules.0.resources=[]", &["webhooks[0].rules[0].resources: Required value"]),
        (r#"webhooks.0.rules.0.resources=[""]"#, &["webhooks[0].rules[0].resources[0]: Required value"]),
        (r#"webhooks.0.rules.0.resources=["*","pods"]"#, &[r#"webhooks[0].rules[0].resources: Invalid value: ["*","pods"]: if '*' is present, must not specify other resources without subresources"#]),
        (r#"webhooks.0.rules.0.resources=["*/*","pods"]"#, &[r#"webhooks[0].rules[0].resources: Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources"#]),
        (r#"webhooks.0.rules.0.resources=["pods/*","pods/status"]"#, &[r#"webhooks[0].rules[0].resources[1]: Invalid value: "pods/status": if 'pods/*' is present, must not specify pods/status"#]),
        (r#"webhooks.0.rules.0.resources=["*/status","pods/status"]"#, &[r#"webhooks[0].rules[0].resources[1]: Invalid value: "pods/status": if '*/status' is present, must not specify pods/status"#]),
        (r#"webhooks.0.rules.0.resources=["pods","*"]"#, &[]),
        (r#"webhooks.0.rules.0.resources=["pods/status","*/status"]"#, &[]),
        (r#"webhooks.0.rules.0.scope="X""#, &[r#"webhooks[0].rules[0].scope: Unsupported value: "X": supported values: "*", "Cluster", "Namespaced""#]),
        (r#"webhooks.0.rules.0.scope="Cluster""#, &[]),
        (r#"webhooks.0.failurePolicy="X""#, &[r#"webhooks[0].failurePolicy: Unsupported value: "X": supported values: "Fail", "Ignore""#]),
        (r#"webhooks.0.matchPolicy="X""#, &[r#"webhooks[0].matchPolicy: Unsupported value: "X": supported values: "Equivalent", "Exact""#]),
        ("webhooks.0.sideEffects=null", &["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"]),
        (r#"webhooks.0.sideEffects="Some""#, &[r#"webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun""#]),
        (r#"webhooks.0.sideEffects="NoneOnDryRun""#, &[]),
        ("webhooks.0.timeoutSeconds=0", &["webhooks[0].timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds"]),
        ("webhooks.0.timeoutSeconds=31", &["webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"]),
        ("webhooks.0.timeoutSeconds=30", &[]),
        (r#"webhooks.0.namespaceSelector={"matchLabels":{"a b":"c"}}"#, &[r#"webhooks[0].namespaceSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphan…"#]),
        (r#"webhooks.0.objectSelector={"matchExpressions":[{"key":"a","operator":"X"}]}"#, &[r#"webhooks[0].objectSelector.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator"#]),
        ("webhooks.0.clientConfig={}", &["webhooks[0].clientConfig: Required value: exactly one of url or service is required"]),
        (r#"webhooks.0.clientConfig={"url":"https://h","service":{"name":"a","namespace":"b"}}"#, &["webhooks[0].clientConfig: Required value: exactly one of url or service is required"]),
        (r#"webhooks.0.clientConfig.url="http://h/p""#, &[r#"webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#]),
        (r#"webhooks.0.clientConfig.url="https://u:p@h/p?q#f""#, &[r#"webhooks[0].clientConfig.url: Invalid value: "u:p": user information is not permitted in the URL"#, r#"webhooks[0].clientConfig.url: Invalid value: "f": fragments are not permitted in the URL"#, r#"webhooks[0].clientConfig.url: Invalid value: "q": query parameters are not permitted in the URL"#]),
        (r#"webhooks.0.clientConfig.url="h""#, &[r#"webhooks[0].clientConfig.url: Invalid value: "": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#, r#"webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]"#]),
        (r#"webhooks.0.clientConfig.url="https://""#, &[r#"webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]"#]),
        (r#"webhooks.0.clientConfig.url=":x""#, &[r#"webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse ":x": missing protocol scheme; desired format: https://host[/path]"#]),
        (r#"webhooks.0.clientConfig.url="https://h:p/""#, &[r#"webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse "https://h:p/": invalid port ":p" after host; desired format: https://host[/path]"#]),
        (r#"webhooks.0.clientConfig.url="""#, &[r#"webhooks[0].clientConfig.url: Invalid value: "": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#, r#"webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]"#]),
        (r#"webhooks.0.clientConfig.url="https://u@h/""#, &[r#"webhooks[0].clientConfig.url: Invalid value: "u": user information is not permitted in the URL"#]),
        (r#"webhooks.0.clientConfig.url="https://h/%zz""#, &[r#"webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse "https://h/%zz": invalid URL escape "%zz"; desired format: https://host[/path]"#]),
        (r#"webhooks.0.clientConfig.url="https://[::1/""#, &[r#"webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse "https://[::1/": missing ']' in host; desired format: https://host[/path]"#]),
        (r#"webhooks.0.clientConfig.url="https://h /""#, &[r#"webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse "https://h /": invalid character " " in host name; desired format: https://host[/path]"#]),
        (r#"webhooks.0.clientConfig={"service":{"name":"","namespace":"b"}}"#, &["webhooks[0].clientConfig.service.namespace: Required value"]),
        (r#"webhooks.0.clientConfig={"service":{"name":"a","namespace":""}}"#, &["webhooks[0].clientConfig.service.name: Required value"]),
        (r#"webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","port":0}}"#, &["webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"]),
        (r#"webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","path":"x"}}"#, &[r#"webhooks[0].clientConfig.service.path: Invalid value: "x": must start with a '/'"#, r#"webhooks[0].clientConfig.service.path: Invalid value: "x": segment[0] may not be empty"#]),
        (r#"webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","path":"//"}}"#, &[r#"webhooks[0].clientConfig.service.path: Invalid value: "//": segment[0] may not be empty"#]),
        (r#"webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","path":"/a//B/"}}"#, &[r#"webhooks[0].clientConfig.service.path: Invalid value: "/a//B/": segment[1] may not be empty"#, r#"webhooks[0].clientConfig.service.path: Invalid value: "/a//B/": segment[2]: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',…"#]),
        (r#"webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","path":"/a/b/"}}"#, &[]),
        (r#"webhooks.0.clientConfig.caBundle="YWJj""#, &[]),
        ("webhooks.0.admissionReviewVersions=[]", &["webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"]),
        (r#"webhooks.0.admissionReviewVersions=["v2"]"#, &[r#"webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1"#]),
        (r#"webhooks.0.admissionReviewVersions=["v1","v1"]"#, &[r#"webhooks[0].admissionReviewVersions[1]: Invalid value: "v1": duplicate version"#]),
        (r#"webhooks.0.admissionReviewVersions=["v1","1"]"#, &[r#"webhooks[0].admissionReviewVersions[1]: Invalid value: "1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character…"#]),
        (r#"webhooks.0.matchConditions=[{"name":"a","expression":"true"},{"name":"a","expression":"true"}]"#, &[r#"webhooks[0].matchConditions[1].name: Duplicate value: "a""#]),
        (r#"webhooks.0.matchConditions=[{"name":"","expression":""}]"#, &["webhooks[0].matchConditions[0].expression: Required value", "webhooks[0].matchConditions[0].name: Required value"]),
        (r#"webhooks.0.matchConditions=[{"name":"a b","expression":" "}]"#, &["webhooks[0].matchConditions[0].expression: Required value", r#"webhooks[0].matchConditions[0].name: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric…"#]),
        (r#"metadata.name="a.static.k8s.io""#, &[]),
        (r#"metadata.finalizers=["x"]"#, &[]),
        (r#"webhooks.0.reinvocationPolicy="X""#, &[r#"webhooks[0].reinvocationPolicy: Unsupported value: "X": supported values: "IfNeeded", "Never""#]),
        (r#"webhooks.0.reinvocationPolicy="IfNeeded""#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"webhooks.0.sideEffects="Some""#, &[r#"webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun""#]),
        (r#"webhooks.0.name="A""#, &[r#"webhooks[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphan…"#]),
        (r#"webhooks.0.admissionReviewVersions=["v2"]"#, &[r#"webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1"#]),
        ("webhooks=[]", &[]),
        ("webhooks.0.timeoutSeconds=40", &["webhooks[0].timeoutSeconds: Invalid value: 40: the timeout value must be between 1 and 30 seconds"]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        (r#"webhooks.0.objectSelector={"matchLabels":{"a":"b c"}}"#, &[r#"webhooks[0].objectSelector.matchLabels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start…"#]),
        (r#"webhooks.0.matchConditions=[{"name":"","expression":"true"}]"#, &["webhooks[0].matchConditions[0].name: Required value"]),
    ]);
}
