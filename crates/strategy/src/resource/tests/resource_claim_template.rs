//! ResourceClaimTemplates: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

pub(super) fn sample() -> Sample {
    Sample::new(
        "resource.k8s.io",
        "v1",
        "ResourceClaimTemplate",
        json!({
            "metadata": {
                "name": "ct",
                "namespace": "default"
            },
            "spec": {
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "exactly": {
                                    "deviceClassName": "c"
                                },
                                "name": "r"
                            }
                        ]
                    }
                }
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
                "name": "ct",
                "namespace": "default"
            },
            "spec": {
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "exactly": {
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                    "deviceClassName": "c"
                                },
                                "name": "r"
                            }
                        ]
                    }
                }
            }
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        (r#"spec.metadata={"labels":{"a b":"c"},"annotations":{"a b":"c"}}"#, &[r#"spec.metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character…"#, r#"spec.metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g…"#]),
        (r#"spec.metadata={"name":"x","finalizers":["x"]}"#, &["spec.metadata.name: Forbidden: cannot be set", "spec.metadata.finalizers: Forbidden: cannot be set"]),
        ("spec.spec.devices=null", &[]),
        ("spec.spec.devices.requests=[]", &[]),
        (r#"spec.spec.devices.requests.0={"name":"r"}"#, &["spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"]),
        (r#"spec.spec.devices.requests.0.name="""#, &[r#"spec.spec.devices.requests[0].name: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with a…"#]),
        (r#"spec.spec.devices.requests.0.name="A""#, &[r#"spec.spec.devices.requests[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with …"#]),
        (r#"spec.spec.devices.requests.0.firstAvailable=[{"name":"s","deviceClassName":"c"}]"#, &["spec.spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"]),
        (r#"spec.spec.devices.requests=[{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"c"},{"name":"s","deviceClassName":""}]}]"#, &["spec.spec.devices.requests[0].firstAvailable[1].deviceClassName: Required value", r#"spec.spec.devices.requests[0].firstAvailable[1]: Duplicate value: "s""#]),
        (r#"spec.spec.devices.requests=[{"name":"r","firstAvailable":[{"name":"","deviceClassName":"C_","allocationMode":"X","selectors":[{}]}]}]"#, &[r#"spec.spec.devices.requests[0].firstAvailable[0].name: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must st…"#, r#"spec.spec.devices.requests[0].firstAvailable[0].deviceClassName: Invalid value: "C_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '…"#, "spec.spec.devices.requests[0].firstAvailable[0].selectors[0].cel: Required value", r#"spec.spec.devices.requests[0].firstAvailable[0].allocationMode: Unsupported value: "X": supported values: "All", "ExactCount""#]),
        (r#"spec.spec.devices.requests=[{"name":"r","firstAvailable":[{"name": "s0", "deviceClassName": "c"}, {"name": "s1", "deviceClassName": "c"}, {"name": "s2", "deviceClassName": "c"}, {"name": "s3", "deviceClassName": "c"}, {"name": "s4", "deviceClassName": "c"}, {"name": "s5", "deviceClassName": "c"}, {"name": "s6", "deviceClassName": "c"}, {"name": "s7", "deviceClassName": "c"}, {"name": "s8", "deviceClassName": "c"}]}]"#, &["spec.spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items"]),
        (r#"spec.spec.devices.requests.+={"name": "r", "exactly": {"deviceClassName": "c"}}"#, &[r#"spec.spec.devices.requests[1]: Duplicate value: "r""#]),
        (r#"spec.spec.devices.requests.0.exactly.deviceClassName="""#, &["spec.spec.devices.requests[0].exactly.deviceClassName: Required value"]),
        (r#"spec.spec.devices.requests.0.exactly.deviceClassName="C_""#, &[r#"spec.spec.devices.requests[0].exactly.deviceClassName: Invalid value: "C_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',…"#]),
        (r#"spec.spec.devices.requests.0.exactly.allocationMode="X""#, &[r#"spec.spec.devices.requests[0].exactly.allocationMode: Unsupported value: "X": supported values: "All", "ExactCount""#]),
        (r#"spec.spec.devices.requests.0.exactly.allocationMode="All""#, &[]),
        (r#"spec.spec.devices.requests.0.exactly={"deviceClassName":"c","allocationMode":"All","count":2}"#, &["spec.spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"]),
        ("spec.spec.devices.requests.0.exactly.count=-1", &["spec.spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"]),
        ("spec.spec.devices.requests.0.exactly.count=3", &[]),
        ("spec.spec.devices.requests.0.exactly.selectors=[{}]", &["spec.spec.devices.requests[0].exactly.selectors[0].cel: Required value"]),
        (r#"spec.spec.devices.requests.0.exactly.selectors=[{"cel":{"expression":"true"}}]"#, &[]),
        (r#"spec.spec.devices.requests.0.exactly.tolerations=[{"key":"a b","operator":"X","effect":"Y"}]"#, &[r#"spec.spec.devices.requests[0].exactly.tolerations[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end…"#, r#"spec.spec.devices.requests[0].exactly.tolerations[0].operator: Unsupported value: "X": supported values: "Equal", "Exists""#, r#"spec.spec.devices.requests[0].exactly.tolerations[0].effect: Unsupported value: "Y": supported values: "NoExecute", "NoSchedule", "None""#]),
        (r#"spec.spec.devices.requests.0.exactly.tolerations=[{"key":"a","operator":"Exists","value":"v"}]"#, &[r#"spec.spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`"#]),
        (r#"spec.spec.devices.requests.0.exactly.tolerations=[{"key":"a","value":"a b"}]"#, &[r#"spec.spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or…"#]),
        (r#"spec.spec.devices.requests.0.exactly.tolerations=[{"key":"a","operator":"Exists","effect":"NoExecute"}]"#, &[]),
        (r#"spec.spec.devices.requests.0.exactly.tolerations=[{"key":"a","operator":""}]"#, &[]),
        (r#"spec.spec.devices.requests.0.exactly.capacity={"requests":{"a b":"1"}}"#, &[]),
        (r#"spec.spec.devices.requests.0.exactly.capacity={"requests":{"a":"1"}}"#, &[]),
        (r#"spec.spec.devices.constraints=[{"requests":["x","r","r","A/b","a/b/c"],"matchAttribute":"a.com/b"}]"#, &[r#"spec.spec.devices.constraints[0].requests[0]: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#, r#"spec.spec.devices.constraints[0].requests[3]: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and…"#, r#"spec.spec.devices.constraints[0].requests[3]: Invalid value: "A/b": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#, r#"spec.spec.devices.constraints[0].requests[4]: Invalid value: "a/b/c": must be the name of a request in the claim or the name of a request and a subrequest separated by '/…"#, r#"spec.spec.devices.constraints[0].requests[2]: Duplicate value: "r""#]),
        (r#"spec.spec.devices.constraints=[{"requests":["r"]}]"#, &[r#"spec.spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set"#]),
        (r#"spec.spec.devices.constraints=[{"matchAttribute":"b"}]"#, &[r#"spec.spec.devices.constraints[0].matchAttribute: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash"#]),
        (r#"spec.spec.devices.constraints=[{"matchAttribute":"A_/1b"}]"#, &[r#"spec.spec.devices.constraints[0].matchAttribute: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and m…"#, r#"spec.spec.devices.constraints[0].matchAttribute: Invalid value: "1b": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumer…"#]),
        (r#"spec.spec.devices.constraints=[{"matchAttribute":"/"}]"#, &[r#"spec.spec.devices.constraints[0].matchAttribute: Invalid value: "": the domain must not be empty"#, r#"spec.spec.devices.constraints[0].matchAttribute: Invalid value: "": the name must not be empty"#]),
        (r#"spec.spec.devices.constraints=[{"matchAttribute":""}]"#, &[r#"spec.spec.devices.constraints[0].matchAttribute: Invalid value: "": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric…"#, r#"spec.spec.devices.constraints[0].matchAttribute: Invalid value: "": a fully qualified name must be a domain and a name separated by a slash"#]),
        (r#"spec.spec.devices.constraints=[{"matchAttribute":"a.com/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}]"#, &["spec.spec.devices.constraints[0].matchAttribute: Too long: may not be more than 32 bytes"]),
        (r#"spec.spec.devices.constraints=[{"distinctAttribute":"b"}]"#, &[r#"spec.spec.devices.constraints[0].distinctAttribute: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash"#]),
        (r#"spec.spec.devices.constraints=[{"distinctAttribute":"a.com/b"}]"#, &[]),
        (r#"spec.spec.devices.constraints=[{"distinctAttribute":"a.com/b","matchAttribute":"a.com/b"}]"#, &[]),
        ("spec.spec.devices.config=[{}]", &["spec.spec.devices.config[0].opaque: Required value"]),
        (r#"spec.spec.devices.config=[{"requests":["x","r","r"],"opaque":{"driver":"","parameters":{}}}]"#, &[r#"spec.spec.devices.config[0].requests[0]: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#, r#"spec.spec.devices.config[0].requests[2]: Duplicate value: "r""#, "spec.spec.devices.config[0].opaque.driver: Required value"]),
        (r#"spec.spec.devices.config=[{"opaque":{"driver":"A_","parameters":{"a":1}}}]"#, &[r#"spec.spec.devices.config[0].opaque.driver: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must st…"#]),
        (r#"spec.spec.devices.config=[{"opaque":{"driver":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","parameters":{"a":1}}}]"#, &["spec.spec.devices.config[0].opaque.driver: Too long: may not be more than 63 bytes"]),
        (r#"spec.spec.devices.config=[{"opaque":{"driver":"d.com","parameters":[]}}]"#, &[r#"spec.spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object"#]),
        (r#"spec.spec.devices.config=[{"opaque":{"driver":"d.com","parameters":"x"}}]"#, &[r#"spec.spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object"#]),
        (r#"spec.spec.devices.config=[{"opaque":{"driver":"d.com"}}]"#, &["spec.spec.devices.config[0].opaque.parameters: Required value"]),
        (r#"spec.spec.devices.config=[{"opaque":{"driver":"d.com","parameters":{}}}]"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.spec.devices.requests.0.name="q""#, &[r#"spec: Invalid value: {"Spec":{"Devices":{"Requests":[{"Name":"q","Exactly":{"DeviceClassName":"c","Selectors":null,"AllocationMode":"ExactCount","Count":1,"AdminAccess":n…"#]),
        (r#"spec.metadata={"labels":{"a":"b"}}"#, &[r#"spec: Invalid value: {"labels":{"a":"b"},"Spec":{"Devices":{"Requests":[{"Name":"r","Exactly":{"DeviceClassName":"c","Selectors":null,"AllocationMode":"ExactCount","Count…"#]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
    ]);
}
