//! APIServices: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "apiregistration.k8s.io",
        "v1",
        "APIService",
        json!({
            "metadata": {
                "name": "v1.example.com"
            },
            "spec": {
                "group": "example.com",
                "groupPriorityMinimum": 100,
                "insecureSkipTLSVerify": true,
                "service": {
                    "name": "s",
                    "namespace": "default"
                },
                "version": "v1",
                "versionPriority": 10
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
                "name": "v1.example.com"
            },
            "spec": {
                "group": "example.com",
                "groupPriorityMinimum": 100,
                "insecureSkipTLSVerify": true,
                "service": {
                    "name": "s",
                    "namespace": "default",
                    "port": 443
                },
                "version": "v1",
                "versionPriority": 10
            },
            "status": {}
        })
    );
    assert_eq!(
        sample().created("spec.service=null;spec.insecureSkipTLSVerify=null"),
        json!({
            "metadata": {
                "name": "v1.example.com"
            },
            "spec": {
                "group": "example.com",
                "groupPriorityMinimum": 100,
                "version": "v1",
                "versionPriority": 10
            },
            "status": {
                "conditions": [
                    {
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                        "message": "Local APIServices are always available",
                        "reason": "Local",
                        "status": "True",
                        "type": "Available"
                    }
                ]
            }
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec.service=null;spec.insecureSkipTLSVerify=false", &[]),
        (r#"metadata.name="x""#, &[r#"metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "v1.example.com""#]),
        (r#"metadata.name="a/b""#, &[r#"metadata.name: Invalid value: "a/b": may not contain '/'"#]),
        (r#"metadata.name="v1.A";spec.group="A""#, &[r#"spec.group: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric…"#]),
        (r#"metadata.name="1.example.com";spec.version="1""#, &[r#"spec.version: Invalid value: "1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanum…"#]),
        (r#"metadata.name=".example.com";spec.version="""#, &[r#"spec.version: Invalid value: "": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanume…"#]),
        (r#"metadata.name="v2.";spec.group="";spec.version="v2""#, &["spec.group: Required value: only v1 may have an empty group and it better be legacy kube"]),
        ("spec.groupPriorityMinimum=0", &["spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000"]),
        ("spec.groupPriorityMinimum=20001", &["spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000"]),
        ("spec.versionPriority=0", &["spec.versionPriority: Invalid value: 0: must be positive and less than 1000"]),
        ("spec.versionPriority=1001", &["spec.versionPriority: Invalid value: 1001: must be positive and less than 1000"]),
        ("spec.groupPriorityMinimum=null;spec.versionPriority=null", &["spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000", "spec.versionPriority: Invalid value: 0: must be positive and less than 1000"]),
        ("spec.service=null", &["spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify"]),
        (r#"spec.service=null;spec.caBundle="YWJj""#, &[r#"spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle"#, "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify"]),
        (r#"spec.service.name="""#, &["spec.service.name: Required value"]),
        (r#"spec.service.namespace="""#, &["spec.service.namespace: Required value"]),
        ("spec.service={}", &["spec.service.namespace: Required value", "spec.service.name: Required value"]),
        ("spec.service.port=0", &["spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"]),
        ("spec.service.port=70000", &["spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive"]),
        (r#"spec.caBundle="YWJj""#, &["spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"]),
        (r#"metadata.finalizers=["x"]"#, &[]),
        (r#"metadata.name="v1.example.com%""#, &[r#"metadata.name: Invalid value: "v1.example.com%": may not contain '%'"#]),
        ("spec=null", &[r#"metadata.name: Invalid value: "v1.example.com": must be `spec.version+"."+spec.group`: ".""#, "spec.group: Required value: only v1 may have an empty group and it better be legacy kube", r#"spec.version: Invalid value: "": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanume…"#, "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000", "spec.versionPriority: Invalid value: 0: must be positive and less than 1000"]),
        (r#"spec.version="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";metadata.name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example.com""#, &[r#"spec.version: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 characters"#]),
        (r#"spec.version="V1";metadata.name="V1.example.com""#, &[r#"spec.version: Invalid value: "V1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanu…"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.service.port=444", &[]),
        (r#"spec.group="b""#, &[r#"metadata.name: Invalid value: "v1.example.com": must be `spec.version+"."+spec.group`: "v1.b""#]),
        ("spec.versionPriority=0", &["spec.versionPriority: Invalid value: 0: must be positive and less than 1000"]),
        (r#"@status status.conditions=[{"type":"Available","status":"X"}]"#, &[r#"status.conditions[0].status: Unsupported value: "X": supported values: "True", "False", "Unknown""#]),
        (r#"@status status.conditions=[{"type":"","status":"True"}]"#, &[]),
        ("@status spec.versionPriority=0", &[]),
        (r#"@status metadata.labels={"a b":"c"}"#, &[]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
    ]);
}
