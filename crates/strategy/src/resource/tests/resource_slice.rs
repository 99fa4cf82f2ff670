//! ResourceSlices: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

pub(super) fn sample() -> Sample {
    Sample::new(
        "resource.k8s.io",
        "v1",
        "ResourceSlice",
        json!({
            "metadata": {
                "name": "sl"
            },
            "spec": {
                "devices": [
                    {
                        "name": "d0"
                    }
                ],
                "driver": "d.com",
                "nodeName": "n",
                "pool": {
                    "generation": 1,
                    "name": "p",
                    "resourceSliceCount": 1
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
                "generation": 1,
                "name": "sl"
            },
            "spec": {
                "devices": [
                    {
                        "name": "d0"
                    }
                ],
                "driver": "d.com",
                "nodeName": "n",
                "pool": {
                    "generation": 1,
                    "name": "p",
                    "resourceSliceCount": 1
                }
            }
        })
    );
    assert_eq!(
        sample().created(r#"spec.devices.0={"name": "d0", "attributes": {"a": {"int": 1}}, "capacity": {"c": {"value": "1Gi"}}, "taints": [{"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]}"#),
        json!({
            "metadata": {
                "generation": 1,
                "name": "sl"
            },
            "spec": {
                "devices": [
                    {
                        "attributes": {
                            "a": {
                                "int": 1
                            }
                        },
                        "capacity": {
                            "c": {
                                "value": "1Gi"
                            }
                        },
                        "name": "d0",
                        "taints": [
                            {
                                "effect": "NoExecute",
                                "key": "a",
                                "timeAdded": "2026-01-01T00:00:00Z"
                            }
                        ]
                    }
                ],
                "driver": "d.com",
                "nodeName": "n",
                "pool": {
                    "generation": 1,
                    "name": "p",
                    "resourceSliceCount": 1
                }
            }
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        (r#"spec.driver="""#, &["spec.driver: Required value"]),
        (r#"spec.driver="A_""#, &[r#"spec.driver: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumer…"#]),
        (r#"spec.driver="D.com""#, &[]),
        (r#"spec.driver="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &["spec.driver: Too long: may not be more than 63 bytes"]),
        (r#"spec.pool.name="""#, &["spec.pool.name: Required value"]),
        (r#"spec.pool.name="a/B/""#, &[r#"spec.pool.name: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanum…"#, r#"spec.pool.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        (r#"spec.pool.name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &["spec.pool.name: Too long: may not be more than 253 bytes", r#"spec.pool.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"#]),
        ("spec.pool.generation=-1", &["spec.pool.generation: Invalid value: -1: must be greater than or equal to zero"]),
        ("spec.pool.resourceSliceCount=0", &["spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"]),
        ("spec.pool={}", &["spec.pool.name: Required value", "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"]),
        (r#"spec.nodeName="""#, &[r#"spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string"#, "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"]),
        (r#"spec.nodeName="N""#, &[r#"spec.nodeName: Invalid value: "N": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        ("spec.nodeName=null", &["spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"]),
        ("spec.allNodes=true", &[r#"spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set"#]),
        ("spec.nodeName=null;spec.allNodes=false", &["spec.allNodes: Invalid value: false: must be either unset or set to true", "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"]),
        ("spec.nodeName=null;spec.allNodes=true", &[]),
        ("spec.nodeName=null;spec.perDeviceNodeSelection=true", &["spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice sp…"]),
        ("spec.perDeviceNodeSelection=false", &["spec.perDeviceNodeSelection: Invalid value: false: must be either unset or set to true"]),
        (r#"spec.nodeName=null;spec.nodeSelector={"nodeSelectorTerms":[]}"#, &["spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term", "spec.nodeSelector.nodeSelectorTerms: Invalid value: []: must have exactly one node selector term"]),
        (r#"spec.nodeName=null;spec.nodeSelector={"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]},{"matchExpressions":[{"key":"b","operator":"Exists"}]}]}"#, &[r#"spec.nodeSelector.nodeSelectorTerms: Invalid value: [{"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null}],"MatchFields":null},{"MatchExpressions":[{"Key":"…"#]),
        (r#"spec.nodeName=null;spec.nodeSelector={"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["A_"]}]}]}"#, &[r#"spec.nodeSelector.nodeSelectorTerms[0].matchFields[0].values[0]: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '…"#]),
        (r#"spec.nodeName=null;spec.nodeSelector={"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]};spec.allNodes=true"#, &[r#"spec: Invalid value: "{`nodeSelector`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are …"#]),
        ("spec.devices=null", &[]),
        (r#"spec.devices.0.name="""#, &[r#"spec.devices[0].name: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric…"#]),
        (r#"spec.devices.0.name="A""#, &[r#"spec.devices[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeri…"#]),
        (r#"spec.devices.+={"name":"d0"}"#, &[r#"spec.devices[1]: Duplicate value: "d0""#]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"a b": {"int": 1}}}"#, &[r#"spec.devices[0].attributes: Invalid value: "a b": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'…"#]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"a": {}}}"#, &[r#"spec.devices[0].attributes[a]: Invalid value: "": exactly one value must be specified"#]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"a": {"int": 1, "bool": true}}}"#, &[r#"spec.devices[0].attributes[a]: Invalid value: {"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":null…"#]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"a": {"string": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}}"#, &["spec.devices[0].attributes[a].string: Too long: may not be more than 64 bytes"]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"a": {"version": "x"}}}"#, &[r#"spec.devices[0].attributes[a].version: Invalid value: "x": must be a string compatible with semver.org spec 2.0.0"#]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"a": {"version": "1.2.3"}}}"#, &[]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"/a": {"int": 1}}}"#, &[r#"spec.devices[0].attributes: Invalid value: "": the domain must not be empty"#]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"A_/": {"int": 1}}}"#, &[r#"spec.devices[0].attributes: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end wit…"#, r#"spec.devices[0].attributes: Invalid value: "": the name must not be empty"#]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"d.com/a": {"bool": false}}}"#, &[]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": {"int": 1}}}"#, &["spec.devices[0].attributes: Too long: may not be more than 32 bytes"]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"a": {"ints": [1]}}}"#, &[r#"spec.devices[0].attributes[a]: Invalid value: "": exactly one value must be specified"#]),
        (r#"spec.devices.0={"name": "d0", "attributes": {"a": {"version": "1.0.0-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}}"#, &["spec.devices[0].attributes[a].version: Too long: may not be more than 64 bytes"]),
        (r#"spec.devices.0={"name": "d0", "capacity": {"a b": {"value": "1"}}}"#, &[r#"spec.devices[0].capacity: Invalid value: "a b": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (…"#]),
        (r#"spec.devices.0={"name": "d0", "capacity": {"a": {"value": "1Gi"}}}"#, &[]),
        (r#"spec.devices.0={"name": "d0", "capacity": {"a": {"value": "1", "requestPolicy": {}}}}"#, &["spec.devices[0].capacity[a].requestPolicy: Forbidden: allowMultipleAllocations must be true"]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}}}}"#, &[]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "4", "requestPolicy": {"validValues": ["1", "2"]}}}}"#, &["spec.devices[0].capacity[a].requestPolicy.default: Required value: required when validValues is defined"]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "4", "requestPolicy": {"default": "3", "validValues": ["2", "1", "5", "5"]}}}}"#, &[r#"spec.devices[0].capacity[a].requestPolicy.validValues[1]: Invalid value: "1": values must be sorted in ascending order"#, r#"spec.devices[0].capacity[a].requestPolicy.validValues[2]: Invalid value: "5": option is larger than capacity value: 4"#, r#"spec.devices[0].capacity[a].requestPolicy.validValues[3]: Invalid value: "5": option is larger than capacity value: 4"#, r#"spec.devices[0].capacity[a].requestPolicy.validValues[3]: Duplicate value: "5""#, r#"spec.devices[0].capacity[a].requestPolicy.validValues: Invalid value: "3": default value is not valid according to the requestPolicy"#]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1"], "validRange": {"min": "1"}}}}}"#, &[r#"spec.devices[0].capacity[a].requestPolicy: Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time"#]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "4", "requestPolicy": {"validRange": {"min": "1"}}}}}"#, &["spec.devices[0].capacity[a].requestPolicy.default: Required value: required when validRange is defined"]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "4", "requestPolicy": {"default": "1", "validRange": {}}}}}"#, &["spec.devices[0].capacity[a].requestPolicy.validRange.min: Required value: required when validRange is defined"]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "4", "requestPolicy": {"default": "0", "validRange": {"min": "5", "max": "6", "step": "2"}}}}}"#, &[r#"spec.devices[0].capacity[a].requestPolicy.validRange.min: Invalid value: "5": min is larger than capacity value: 4"#, r#"spec.devices[0].capacity[a].requestPolicy.validRange.min: Invalid value: "0": default is less than min: 5"#, r#"spec.devices[0].capacity[a].requestPolicy.validRange.max: Invalid value: "6": max is larger than capacity value: 4"#, r#"spec.devices[0].capacity[a].requestPolicy.validRange.step: Invalid value: "2": one step 7 is larger than capacity value: 4"#, r#"spec.devices[0].capacity[a].requestPolicy.validRange.step: Invalid value: "0": value is not a multiple of a given step (2) from (5)"#, r#"spec.devices[0].capacity[a].requestPolicy.validRange.step: Invalid value: "6": value is not a multiple of a given step (2) from (5)"#]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "40", "requestPolicy": {"default": "9", "validRange": {"min": "1", "max": "8", "step": "3"}}}}}"#, &[r#"spec.devices[0].capacity[a].requestPolicy.validRange.max: Invalid value: "9": default is more than max: 8"#, r#"spec.devices[0].capacity[a].requestPolicy.validRange.step: Invalid value: "9": value is not a multiple of a given step (3) from (1)"#, r#"spec.devices[0].capacity[a].requestPolicy.validRange.step: Invalid value: "8": value is not a multiple of a given step (3) from (1)"#]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "40", "requestPolicy": {"default": "7", "validRange": {"min": "1", "max": "10", "step": "3"}}}}}"#, &[]),
        (r#"spec.devices.0={"name": "d0", "allowMultipleAllocations": true, "capacity": {"a": {"value": "40", "requestPolicy": {"default": "7", "validValues": ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]}}}}"#, &["spec.devices[0].capacity[a].requestPolicy.validValues: Too many: 11: must have at most 10 items", r#"spec.devices[0].capacity[a].requestPolicy.validValues: Invalid value: "7": default value is not valid according to the requestPolicy"#]),
        (r#"spec.devices.0={"name": "d0", "taints": [{"key": "", "effect": ""}]}"#, &[r#"spec.devices[0].taints[0].key: Invalid value: "": name part must be non-empty"#, r#"spec.devices[0].taints[0].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric characte…"#, "spec.devices[0].taints[0].effect: Required value"]),
        (r#"spec.devices.0={"name": "d0", "taints": [{"key": "a", "value": "a b", "effect": "X"}]}"#, &[r#"spec.devices[0].taints[0].value: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and en…"#, r#"spec.devices[0].taints[0].effect: Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None""#]),
        (r#"spec.devices.0={"name": "d0", "taints": [{"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]}"#, &[]),
        (r#"spec.devices.0={"name": "d0", "consumesCounters": [{"counterSet": "", "counters": {}}]}"#, &["spec.devices[0].consumesCounters[0].counterSet: Required value", "spec.devices[0].consumesCounters[0].counters: Required value"]),
        (r#"spec.devices.0={"name": "d0", "consumesCounters": [{"counterSet": "A", "counters": {"B": {"value": "1"}}}]}"#, &[r#"spec.devices[0].consumesCounters[0].counterSet: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start a…"#, r#"spec.devices[0].consumesCounters[0].counters: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and…"#]),
        (r#"spec.devices.0={"name": "d0", "consumesCounters": [{"counterSet": "a", "counters": {"b": {"value": "1"}}}, {"counterSet": "a", "counters": {"b": {"value": "1"}}}]}"#, &[r#"spec.devices[0].consumesCounters[1]: Duplicate value: "a""#]),
        (r#"spec.devices.0={"name": "d0", "consumesCounters": [{"counterSet": "a0", "counters": {"b": {"value": "1"}}}, {"counterSet": "a1", "counters": {"b": {"value": "1"}}}, {"counterSet": "a2", "counters": {"b": {"value": "1"}}}]}"#, &["spec.devices[0].consumesCounters: Too many: 3: must have at most 2 items"]),
        (r#"spec.devices.0={"name": "d0", "nodeName": "n"}"#, &["spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"]),
        (r#"spec.nodeName=null;spec.perDeviceNodeSelection=true;spec.devices.0={"name": "d0", "nodeName": "N"}"#, &[r#"spec.devices[0].nodeName: Invalid value: "N": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with a…"#]),
        (r#"spec.nodeName=null;spec.perDeviceNodeSelection=true;spec.devices.0={"name": "d0", "nodeName": ""}"#, &[r#"spec.devices[0].nodeName: Invalid value: "": must not be empty"#, "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice sp…"]),
        (r#"spec.nodeName=null;spec.perDeviceNodeSelection=true;spec.devices.0={"name": "d0", "allNodes": false}"#, &["spec.devices[0].allNodes: Invalid value: false: must be either unset or set to true", "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice sp…"]),
        (r#"spec.nodeName=null;spec.perDeviceNodeSelection=true;spec.devices.0={"name": "d0", "allNodes": true, "nodeName": "n"}"#, &[r#"spec.devices[0]: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to t…"#]),
        (r#"spec.nodeName=null;spec.perDeviceNodeSelection=true;spec.devices.0={"name": "d0", "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}"#, &[]),
        (r#"spec.devices.0={"name": "d0", "bindingConditions": ["a"], "bindingFailureConditions": ["b"]}"#, &[]),
        (r#"spec.devices.0={"name": "d0", "bindingConditions": ["a"]}"#, &["spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions"]),
        (r#"spec.devices.0={"name": "d0", "bindingFailureConditions": ["a"]}"#, &["spec.devices[0].bindingConditions: Invalid value: null: bindingConditions are required to use bindingFailureConditions"]),
        (r#"spec.devices.0={"name": "d0", "bindingConditions": ["a b", "x", "x"], "bindingFailureConditions": ["x", "y", "y"]}"#, &[r#"spec.devices[0].bindingConditions[0]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeri…"#, r#"spec.devices[0].bindingConditions[2]: Duplicate value: "x""#, r#"spec.devices[0].bindingFailureConditions[0]: Invalid value: "x": bindingFailureConditions must not overlap with bindingConditions"#, r#"spec.devices[0].bindingFailureConditions[2]: Duplicate value: "y""#]),
        (r#"spec.devices.0={"name": "d0", "bindingConditions": ["a", "b", "c", "d", "e"], "bindingFailureConditions": ["x"]}"#, &["spec.devices[0].bindingConditions: Too many: 5: must have at most 4 items"]),
        (r#"spec.sharedCounters=[{"name":"a","counters":{"b":{"value":"1"}}}]"#, &[r#"spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed"#]),
        ("spec.sharedCounters=[]", &[r#"spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed"#]),
        (r#"spec.devices=null;spec.sharedCounters=[{"name":"","counters":{}}]"#, &["spec.sharedCounters[0].name: Required value", "spec.sharedCounters[0].counters: Required value"]),
        (r#"spec.devices=null;spec.sharedCounters=[{"name":"A","counters":{"B":{"value":"1"}}}]"#, &[r#"spec.sharedCounters[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alph…"#, r#"spec.sharedCounters[0].counters: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an …"#]),
        (r#"spec.devices=null;spec.sharedCounters=[{"name":"a","counters":{"b":{"value":"1"}}},{"name":"a","counters":{"b":{"value":"1"}}}]"#, &[r#"spec.sharedCounters[1]: Duplicate value: "a""#]),
        (r#"spec.devices=null;spec.sharedCounters=[{"name": "a0", "counters": {"b": {"value": "1"}}}, {"name": "a1", "counters": {"b": {"value": "1"}}}, {"name": "a2", "counters": {"b": {"value": "1"}}}, {"name": "a3", "counters": {"b": {"value": "1"}}}, {"name": "a4", "counters": {"b": {"value": "1"}}}, {"name": "a5", "counters": {"b": {"value": "1"}}}, {"name": "a6", "counters": {"b": {"value": "1"}}}, {"name": "a7", "counters": {"b": {"value": "1"}}}, {"name": "a8", "counters": {"b": {"value": "1"}}}]"#, &["spec.sharedCounters: Too many: 9: must have at most 8 items"]),
        ("spec=null", &["spec.driver: Required value", "spec.pool.name: Required value", "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero", "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.driver="e.com""#, &[r#"spec.driver: Invalid value: "e.com": field is immutable"#]),
        (r#"spec.pool.name="q""#, &[r#"spec.pool.name: Invalid value: "q": field is immutable"#]),
        (r#"spec.nodeName="m""#, &[r#"spec.nodeName: Invalid value: "m": field is immutable"#]),
        ("spec.nodeName=null", &["spec.nodeName: Invalid value: null: field is immutable", "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"]),
        ("spec.pool.generation=2", &[]),
        ("spec.devices=[]", &[]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        (r#"spec.devices.0.taints=[{"key":"","effect":"X"}]"#, &[r#"spec.devices[0].taints[0].key: Invalid value: "": name part must be non-empty"#, r#"spec.devices[0].taints[0].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric characte…"#, r#"spec.devices[0].taints[0].effect: Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None""#]),
        (r#"spec.devices.0.name="A""#, &[r#"spec.devices[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeri…"#]),
    ]);
}
