//! ResourceClaims: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

pub(super) fn sample() -> Sample {
    Sample::new(
        "resource.k8s.io",
        "v1",
        "ResourceClaim",
        json!({
            "metadata": {
                "name": "cl",
                "namespace": "default"
            },
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
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {
                "name": "cl",
                "namespace": "default"
            },
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
            },
            "status": {}
        })
    );
    assert_eq!(
        sample().created(r#"spec.devices.requests=[{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"c"},{"name":"t","deviceClassName":"c","allocationMode":"All","tolerations":[{"key":"a"}]}]}]"#),
        json!({
            "metadata": {
                "name": "cl",
                "namespace": "default"
            },
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "firstAvailable": [
                                {
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                    "deviceClassName": "c",
                                    "name": "s"
                                },
                                {
                                    "allocationMode": "All",
                                    "deviceClassName": "c",
                                    "name": "t",
                                    "tolerations": [
                                        {
                                            "key": "a",
                                            "operator": "Equal"
                                        }
                                    ]
                                }
                            ],
                            "name": "r"
                        }
                    ]
                }
            },
            "status": {}
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        ("spec.devices=null", &[]),
        ("spec.devices.requests=[]", &[]),
        (r#"spec.devices.requests.0={"name":"r"}"#, &["spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"]),
        (r#"spec.devices.requests.0.name="""#, &[r#"spec.devices.requests[0].name: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alp…"#]),
        (r#"spec.devices.requests.0.name="A""#, &[r#"spec.devices.requests[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an al…"#]),
        (r#"spec.devices.requests.0.firstAvailable=[{"name":"s","deviceClassName":"c"}]"#, &["spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"]),
        (r#"spec.devices.requests=[{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"c"},{"name":"s","deviceClassName":""}]}]"#, &["spec.devices.requests[0].firstAvailable[1].deviceClassName: Required value", r#"spec.devices.requests[0].firstAvailable[1]: Duplicate value: "s""#]),
        (r#"spec.devices.requests=[{"name":"r","firstAvailable":[{"name":"","deviceClassName":"C_","allocationMode":"X","selectors":[{}]}]}]"#, &[r#"spec.devices.requests[0].firstAvailable[0].name: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start a…"#, r#"spec.devices.requests[0].firstAvailable[0].deviceClassName: Invalid value: "C_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or…"#, "spec.devices.requests[0].firstAvailable[0].selectors[0].cel: Required value", r#"spec.devices.requests[0].firstAvailable[0].allocationMode: Unsupported value: "X": supported values: "All", "ExactCount""#]),
        (r#"spec.devices.requests=[{"name":"r","firstAvailable":[{"name": "s0", "deviceClassName": "c"}, {"name": "s1", "deviceClassName": "c"}, {"name": "s2", "deviceClassName": "c"}, {"name": "s3", "deviceClassName": "c"}, {"name": "s4", "deviceClassName": "c"}, {"name": "s5", "deviceClassName": "c"}, {"name": "s6", "deviceClassName": "c"}, {"name": "s7", "deviceClassName": "c"}, {"name": "s8", "deviceClassName": "c"}]}]"#, &["spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items"]),
        (r#"spec.devices.requests.+={"name": "r", "exactly": {"deviceClassName": "c"}}"#, &[r#"spec.devices.requests[1]: Duplicate value: "r""#]),
        (r#"spec.devices.requests.0.exactly.deviceClassName="""#, &["spec.devices.requests[0].exactly.deviceClassName: Required value"]),
        (r#"spec.devices.requests.0.exactly.deviceClassName="C_""#, &[r#"spec.devices.requests[0].exactly.deviceClassName: Invalid value: "C_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and …"#]),
        (r#"spec.devices.requests.0.exactly.allocationMode="X""#, &[r#"spec.devices.requests[0].exactly.allocationMode: Unsupported value: "X": supported values: "All", "ExactCount""#]),
        (r#"spec.devices.requests.0.exactly.allocationMode="All""#, &[]),
        (r#"spec.devices.requests.0.exactly={"deviceClassName":"c","allocationMode":"All","count":2}"#, &["spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"]),
        ("spec.devices.requests.0.exactly.count=-1", &["spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"]),
        ("spec.devices.requests.0.exactly.count=3", &[]),
        ("spec.devices.requests.0.exactly.selectors=[{}]", &["spec.devices.requests[0].exactly.selectors[0].cel: Required value"]),
        (r#"spec.devices.requests.0.exactly.selectors=[{"cel":{"expression":"true"}}]"#, &[]),
        (r#"spec.devices.requests.0.exactly.tolerations=[{"key":"a b","operator":"X","effect":"Y"}]"#, &[r#"spec.devices.requests[0].exactly.tolerations[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with…"#, r#"spec.devices.requests[0].exactly.tolerations[0].operator: Unsupported value: "X": supported values: "Equal", "Exists""#, r#"spec.devices.requests[0].exactly.tolerations[0].effect: Unsupported value: "Y": supported values: "NoExecute", "NoSchedule", "None""#]),
        (r#"spec.devices.requests.0.exactly.tolerations=[{"key":"a","operator":"Exists","value":"v"}]"#, &[r#"spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`"#]),
        (r#"spec.devices.requests.0.exactly.tolerations=[{"key":"a","value":"a b"}]"#, &[r#"spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',…"#]),
        (r#"spec.devices.requests.0.exactly.tolerations=[{"key":"a","operator":"Exists","effect":"NoExecute"}]"#, &[]),
        (r#"spec.devices.requests.0.exactly.tolerations=[{"key":"a","operator":""}]"#, &[]),
        (r#"spec.devices.requests.0.exactly.capacity={"requests":{"a b":"1"}}"#, &[]),
        (r#"spec.devices.requests.0.exactly.capacity={"requests":{"a":"1"}}"#, &[]),
        (r#"spec.devices.constraints=[{"requests":["x","r","r","A/b","a/b/c"],"matchAttribute":"a.com/b"}]"#, &[r#"spec.devices.constraints[0].requests[0]: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#, r#"spec.devices.constraints[0].requests[3]: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end …"#, r#"spec.devices.constraints[0].requests[3]: Invalid value: "A/b": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#, r#"spec.devices.constraints[0].requests[4]: Invalid value: "a/b/c": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#, r#"spec.devices.constraints[0].requests[2]: Duplicate value: "r""#]),
        (r#"spec.devices.constraints=[{"requests":["r"]}]"#, &[r#"spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set"#]),
        (r#"spec.devices.constraints=[{"matchAttribute":"b"}]"#, &[r#"spec.devices.constraints[0].matchAttribute: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash"#]),
        (r#"spec.devices.constraints=[{"matchAttribute":"A_/1b"}]"#, &[r#"spec.devices.constraints[0].matchAttribute: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must s…"#, r#"spec.devices.constraints[0].matchAttribute: Invalid value: "1b": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric ch…"#]),
        (r#"spec.devices.constraints=[{"matchAttribute":"/"}]"#, &[r#"spec.devices.constraints[0].matchAttribute: Invalid value: "": the domain must not be empty"#, r#"spec.devices.constraints[0].matchAttribute: Invalid value: "": the name must not be empty"#]),
        (r#"spec.devices.constraints=[{"matchAttribute":""}]"#, &[r#"spec.devices.constraints[0].matchAttribute: Invalid value: "": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric char…"#, r#"spec.devices.constraints[0].matchAttribute: Invalid value: "": a fully qualified name must be a domain and a name separated by a slash"#]),
        (r#"spec.devices.constraints=[{"matchAttribute":"a.com/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}]"#, &["spec.devices.constraints[0].matchAttribute: Too long: may not be more than 32 bytes"]),
        (r#"spec.devices.constraints=[{"distinctAttribute":"b"}]"#, &[r#"spec.devices.constraints[0].distinctAttribute: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash"#]),
        (r#"spec.devices.constraints=[{"distinctAttribute":"a.com/b"}]"#, &[]),
        (r#"spec.devices.constraints=[{"distinctAttribute":"a.com/b","matchAttribute":"a.com/b"}]"#, &[]),
        ("spec.devices.config=[{}]", &["spec.devices.config[0].opaque: Required value"]),
        (r#"spec.devices.config=[{"requests":["x","r","r"],"opaque":{"driver":"","parameters":{}}}]"#, &[r#"spec.devices.config[0].requests[0]: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#, r#"spec.devices.config[0].requests[2]: Duplicate value: "r""#, "spec.devices.config[0].opaque.driver: Required value"]),
        (r#"spec.devices.config=[{"opaque":{"driver":"A_","parameters":{"a":1}}}]"#, &[r#"spec.devices.config[0].opaque.driver: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start a…"#]),
        (r#"spec.devices.config=[{"opaque":{"driver":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","parameters":{"a":1}}}]"#, &["spec.devices.config[0].opaque.driver: Too long: may not be more than 63 bytes"]),
        (r#"spec.devices.config=[{"opaque":{"driver":"d.com","parameters":[]}}]"#, &[r#"spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object"#]),
        (r#"spec.devices.config=[{"opaque":{"driver":"d.com","parameters":"x"}}]"#, &[r#"spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object"#]),
        (r#"spec.devices.config=[{"opaque":{"driver":"d.com"}}]"#, &["spec.devices.config[0].opaque.parameters: Required value"]),
        (r#"spec.devices.config=[{"opaque":{"driver":"d.com","parameters":{}}}]"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.devices.requests.0.name="q""#, &[r#"spec: Invalid value: {"Devices":{"Requests":[{"Name":"q","Exactly":{"DeviceClassName":"c","Selectors":null,"AllocationMode":"ExactCount","Count":1,"AdminAccess":null,"Tol…"#]),
        (r#"spec.devices.requests.+={"name": "q", "exactly": {"deviceClassName": "c"}}"#, &[r#"spec: Invalid value: {"Devices":{"Requests":[{"Name":"r","Exactly":{"DeviceClassName":"c","Selectors":null,"AllocationMode":"ExactCount","Count":1,"AdminAccess":null,"Tol…"#]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        ("spec.devices.requests.0.exactly.count=2", &[r#"spec: Invalid value: {"Devices":{"Requests":[{"Name":"r","Exactly":{"DeviceClassName":"c","Selectors":null,"AllocationMode":"ExactCount","Count":2,"AdminAccess":null,"Tol…"#]),
        (r#"status={"devices":[]}"#, &[]),
        (r#"@status status.reservedFor=[{"resource":"pods","name":"p","uid":"u"}]"#, &["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"]),
        (r#"@status status={"allocation":{"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev"}]}},"reservedFor":[{"resource":"","name":"","uid":""}]}"#, &["status.reservedFor[0].resource: Required value", "status.reservedFor[0].name: Required value", "status.reservedFor[0].uid: Required value"]),
        (r#"@status status={"allocation":{"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev"}]}},"reservedFor":[{"resource":"pods","name":"p","uid":"u"},{"resource":"pods","name":"q","uid":"u"}]}"#, &[r#"status.reservedFor[1]: Duplicate value: "u""#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev"}]}}"#, &[]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "x", "driver": "d.com", "pool": "p", "device": "dev"}]}}"#, &[r#"status.allocation.devices.results[0].request: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "", "pool": "p", "device": "dev"}]}}"#, &["status.allocation.devices.results[0].driver: Required value"]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "A_", "pool": "p", "device": "dev"}]}}"#, &[r#"status.allocation.devices.results[0].driver: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must …"#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "", "device": "dev"}]}}"#, &["status.allocation.devices.results[0].pool: Required value"]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "a/B", "device": "dev"}]}}"#, &[r#"status.allocation.devices.results[0].pool: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must sta…"#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "device": "dev"}]}}"#, &["status.allocation.devices.results[0].pool: Too long: may not be more than 253 bytes", r#"status.allocation.devices.results[0].pool: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": ""}]}}"#, &[r#"status.allocation.devices.results[0].device: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and e…"#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "A"}]}}"#, &[r#"status.allocation.devices.results[0].device: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and …"#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev", "shareID": "x"}]}}"#, &[r#"status.allocation.devices.results[0].shareID: Invalid value: "x": error validating uid: invalid UUID length: 1"#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev", "shareID": "AAAAAAAA-AAAA-AAAA-AAAA-AAAAAAAAAAAA"}]}}"#, &[r#"status.allocation.devices.results[0].shareID: Invalid value: "AAAAAAAA-AAAA-AAAA-AAAA-AAAAAAAAAAAA": uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxx…"#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev", "shareID": "11111111-1111-1111-1111-111111111111"}]}}"#, &[]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev", "bindingConditions": ["a"]}]}}"#, &["status.allocation.devices.results[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions"]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev", "bindingFailureConditions": ["a"]}]}}"#, &["status.allocation.devices.results[0].bindingConditions: Invalid value: null: bindingConditions are required to use bindingFailureConditions"]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev", "bindingConditions": ["a", "a"], "bindingFailureConditions": ["a", "b c"]}]}}"#, &[r#"status.allocation.devices.results[0].bindingFailureConditions[1]: Invalid value: "b c": name part must consist of alphanumeric characters, '-', '_' or '.', and must start…"#, r#"status.allocation.devices.results[0].bindingConditions[1]: Duplicate value: "a""#, r#"status.allocation.devices.results[0].bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with bindingConditions"#]),
        (r#"@status status.allocation={"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev", "bindingConditions": ["a", "b", "c", "d", "e"], "bindingFailureConditions": ["x"]}]}}"#, &["status.allocation.devices.results[0].bindingConditions: Too many: 5: must have at most 4 items"]),
        (r#"@status status.allocation={"devices": {"config": [{"source": "X"}]}}"#, &[r#"status.allocation.devices.config[0].source: Unsupported value: "X": supported values: "FromClaim", "FromClass""#, "status.allocation.devices.config[0].opaque: Required value"]),
        (r#"@status status.allocation={"devices": {"config": [{"source": "", "requests": ["x", "x"]}]}}"#, &["status.allocation.devices.config[0].source: Required value", r#"status.allocation.devices.config[0].requests[0]: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#, r#"status.allocation.devices.config[0].requests[1]: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"#, r#"status.allocation.devices.config[0].requests[1]: Duplicate value: "x""#, "status.allocation.devices.config[0].opaque: Required value"]),
        (r#"@status status.allocation={"devices": {"config": [{"source": "FromClass", "opaque": {"driver": "d.com", "parameters": {}}}]}}"#, &[]),
        (r#"@status status.allocation={"nodeSelector": {}}"#, &["status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term"]),
        (r#"@status status.allocation={"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a b", "operator": "X"}]}]}}"#, &[r#"status.allocation.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "X": not a valid selector operator"#, r#"status.allocation.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and…"#]),
        ("@status status.allocation={}", &[]),
        (r#"@status status.devices=[{"driver":"d.com","pool":"p","device":"dev"}]"#, &[r#"status.devices[0]: Invalid value: {"Driver":"d.com","Pool":"p","Device":"dev","ShareID":""}: must be an allocated device in the claim"#]),
        (r#"@status status={"allocation":{"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev"}]}},"devices":[{"driver":"","pool":"","device":""}]}"#, &["status.devices[0].driver: Required value", "status.devices[0].pool: Required value", r#"status.devices[0].device: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanum…"#, r#"status.devices[0]: Invalid value: {"Driver":"","Pool":"","Device":"","ShareID":""}: must be an allocated device in the claim"#]),
        (r#"@status status={"allocation":{"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev"}]}},"devices":[{"driver":"d.com","pool":"p","device":"dev"},{"driver":"d.com","pool":"p","device":"dev"}]}"#, &[r#"status.devices[1]: Duplicate value: {"Driver":"d.com","Pool":"p","Device":"dev","ShareID":""}"#]),
        (r#"@status status={"allocation":{"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev"}]}},"devices":[{"driver":"d.com","pool":"p","device":"dev","data":{"a":1},"conditions":[{"type":"A","status":"True","reason":"R","lastTransitionTime":"2026-01-01T00:00:00Z","message":""}],"networkData":{"interfaceName":"e","ips":["10.0.0.1/24"],"hardwareAddress":"x"}}]}"#, &[]),
        (r#"@status status={"allocation":{"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev"}]}},"devices":[{"driver":"d.com","pool":"p","device":"dev","shareID":"x"}]}"#, &[r#"status.devices[0].shareID: Invalid value: "x": error validating uid: invalid UUID length: 1"#, r#"status.devices[0]: Invalid value: {"Driver":"d.com","Pool":"p","Device":"dev","ShareID":"x"}: must be an allocated device in the claim"#]),
        (r#"@status status={"allocation":{"devices": {"results": [{"request": "r", "driver": "d.com", "pool": "p", "device": "dev"}]}},"devices":[{"driver":"d.com","pool":"p","device":"dev","networkData":{"ips":["10.0.0.0/24", "10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24", "10.0.0.4/24", "10.0.0.5/24", "10.0.0.6/24", "10.0.0.7/24", "10.0.0.8/24", "10.0.0.9/24", "10.0.0.10/24", "10.0.0.11/24", "10.0.0.12/24", "10.0.0.13/24", "10.0.0.14/24", "10.0.0.15/24", "10.0.0.16/24"]}}]}"#, &["status.devices[0].networkData.ips: Too many: 17: must have at most 16 items"]),
        ("@status spec.devices.requests=[]", &[]),
        (r#"@status metadata.labels={"a b":"c"}"#, &[]),
    ]);
}
