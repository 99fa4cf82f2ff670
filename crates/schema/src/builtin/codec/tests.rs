//! The codec against hand-made objects, and against upstream's golden files.

use serde_json::{Value, json};

use super::super::{TypeId, table};
use super::*;

fn ty(api_version: &str, kind: &str) -> TypeId {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    table().kind(group, version, kind).unwrap_or_else(|| panic!("{api_version} {kind} is not built in")).ty
}

/// Splices a resourceVersion in, as the cache does.
fn with_rv(mut bytes: Vec<u8>, slot: Slot, rv: &str) -> String {
    let member = format!("\"resourceVersion\":{},", json!(rv));
    bytes.splice(slot..slot, member.into_bytes());
    String::from_utf8(bytes).expect("JSON is text")
}

#[test]
fn golden_files_come_out_as_they_went_in() {
    let Some(goldens) = forebay_golden::goldens(&[forebay_golden::API]) else { return };
    assert!(goldens.len() > 150, "only {} golden files", goldens.len());
    goldens.iter().for_each(|golden| check_golden(&golden.name, &golden.json));
}

fn check_golden(name: &str, text: &str) {
    let mut value: Value = serde_json::from_str(text).expect("the file is JSON");
    let (group, version, kind) = gvk_of(name);
    let found = table().kind(&group, &version, &kind);
    let ty = found.unwrap_or_else(|| panic!("{name} is of no built-in kind")).ty;
    let problems = normalize(ty, &mut value).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(problems, [], "{name}");
    let want = compact(text);

    let mut out = Vec::new();
    write_json(ty, &value, &mut out).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(String::from_utf8(out).expect("JSON is text"), want, "{name}");

    let stored = table().member(ty, "metadata").is_some_and(|m| table().ty(m.ty).name == "ObjectMeta");
    if stored {
        let mut out = b"before".to_vec();
        let slot = encode(ty, &value, &mut out).unwrap_or_else(|error| panic!("{name}: {error}"));
        let got = with_rv(out.split_off(6), slot, "resourceVersionValue");
        let head = format!("{{\"kind\":{},\"apiVersion\":{},", value["kind"], value["apiVersion"]);
        assert_eq!(head + &got, want, "{name}");
    }
}

/// Golden files are named GROUP.VERSION.KIND, with `core` for the core group.
fn gvk_of(name: &str) -> (String, String, String) {
    let mut parts = name.rsplitn(3, '.').map(str::to_owned);
    let (kind, version) = (parts.next().expect("a kind"), parts.next().expect("a version"));
    let group = parts.next().filter(|group| group != "core").unwrap_or_default();
    (group, version, kind)
}

/// Takes the indentation out and keeps everything else.
fn compact(text: &str) -> String {
    let mut compact = String::new();
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string || !c.is_whitespace() {
            compact.push(c);
        }
        if escaped {
            escaped = false;
        } else if in_string && c == '\\' {
            escaped = true;
        } else if c == '"' {
            in_string = !in_string;
        }
    }
    compact
}

#[test]
fn absent_structs_and_required_fields_are_written_as_go_writes_them() {
    let check = |api_version: &str, kind: &str, value: Value, want: &str| {
        let ty = ty(api_version, kind);
        let mut value = value;
        assert_eq!(normalize(ty, &mut value), Ok(vec![]));
        let mut out = Vec::new();
        write_json(ty, &value, &mut out).expect("it is canonical");
        assert_eq!(String::from_utf8(out).expect("JSON is text"), want);
    };
    check("v1", "Pod", json!({}), r#"{"metadata":{},"spec":{"containers":null},"status":{}}"#);
    check(
        "v1",
        "ConfigMap",
        json!({"data": {"b": "2", "a": "1"}}),
        r#"{"metadata":{},"data":{"a":"1","b":"2"}}"#,
    );
    check(
        "apps/v1",
        "Deployment",
        json!({"spec": {"replicas": 0, "paused": false}}),
        concat!(
            r#"{"metadata":{},"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"#,
            r#""spec":{"containers":null}},"strategy":{}},"status":{}}"#
        ),
    );
    check(
        "v1",
        "Event",
        json!({"involvedObject": {}}),
        concat!(
            r#"{"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":null,"#,
            r#""lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""}"#
        ),
    );
    check(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        json!({"rules": []}),
        r#"{"metadata":{},"rules":null}"#,
    );
    check(
        "v1",
        "PodList",
        json!({"metadata": {"resourceVersion": "7"}, "items": [null, {"spec": {"containers": [null]}}]}),
        concat!(
            r#"{"metadata":{"resourceVersion":"7"},"items":["#,
            r#"{"metadata":{},"spec":{"containers":null},"status":{}},"#,
            r#"{"metadata":{},"spec":{"containers":[{"name":"","resources":{}}]},"status":{}}]}"#
        ),
    );
}

#[test]
fn empty_lists_of_json_stored_types_stay() {
    let ty = ty("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let mut value = json!({"status": {"conditions": [], "storedVersions": []}, "metadata": {"uid": "u"}});
    assert_eq!(normalize(ty, &mut value), Ok(vec![]));
    let mut out = Vec::new();
    write_json(ty, &value, &mut out).expect("it is canonical");
    let want = concat!(
        r#"{"metadata":{"uid":"u"},"spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":null},"#,
        r#""status":{"conditions":[],"acceptedNames":{"plural":"","kind":""},"storedVersions":[]}}"#
    );
    assert_eq!(String::from_utf8(out).expect("JSON is text"), want);
}

#[test]
fn values_become_canonical() {
    let mut value = json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": "a", "creationTimestamp": "2024-01-01T01:00:00+01:00",
            "labels": {"a": null}, "annotations": {}, "finalizers": [],
            "deletionTimestamp": null,
        },
        "spec": {
            "containers": [{
                "name": "c",
                "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi", "x": 2}},
                "livenessProbe": {"httpGet": {"port": "http"}},
            }],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    });
    assert_eq!(normalize(ty("v1", "Pod"), &mut value), Ok(vec![]));
    let want = json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": "a", "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"a": ""}},
        "spec": {
            "containers": [{
                "name": "c",
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi", "x": "2"}},
                "livenessProbe": {"httpGet": {"port": "http"}},
            }],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    });
    assert_eq!(value, want);
    let mut again = value.clone();
    assert_eq!(normalize(ty("v1", "Pod"), &mut again), Ok(vec![]));
    assert_eq!(again, value);
}

#[test]
fn bytes_may_be_a_list_of_numbers_and_may_be_empty() {
    let mut value = json!({"data": {"a": [97, null, 255], "b": "", "c": null}});
    assert_eq!(normalize(ty("v1", "Secret"), &mut value), Ok(vec![]));
    assert_eq!(value, json!({"data": {"a": "YQD/", "b": "", "c": ""}}));
}

#[test]
fn unknown_fields_are_dropped_and_named_with_their_path() {
    let mut value = json!({
        "foo": 1,
        "Metadata": {},
        "spec": {
            "Containers": [],
            "containers": [{"name": "a", "bar": {}}, {"name": "b", "ports": [{"x\"y": 1}]}],
            "nodeSelector": {"anything": "goes"},
        },
    });
    let problems = normalize(ty("v1", "Pod"), &mut value).expect("nothing is of the wrong type");
    let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let want = [
        r#"unknown field "Metadata""#,
        r#"unknown field "foo""#,
        r#"unknown field "spec.Containers""#,
        r#"unknown field "spec.containers[0].bar""#,
        r#"unknown field "spec.containers[1].ports[0].x\"y""#,
    ];
    assert_eq!(words, want);
    let containers = json!([{"name": "a"}, {"name": "b", "ports": [{}]}]);
    let want = json!({"spec": {"containers": containers, "nodeSelector": {"anything": "goes"}}});
    assert_eq!(value, want);
}

#[test]
fn no_more_than_a_hundred_unknown_fields_are_named() {
    let map: serde_json::Map<_, _> = (0..300).map(|n| (format!("x{n:03}"), Value::Null)).collect();
    let mut value = Value::Object(map);
    let problems = normalize(ty("v1", "Pod"), &mut value).expect("nothing is of the wrong type");
    assert_eq!(problems.len(), PROBLEMS_MAX);
    assert_eq!(value, json!({}));
}

#[test]
fn wrong_types_are_refused_in_gos_words() {
    let check = |api_version: &str, kind: &str, mut value: Value, want: &str| {
        let error = normalize(ty(api_version, kind), &mut value).expect_err(want);
        assert_eq!(error.to_string(), want);
    };
    let pod = |spec: Value, want: &str| check("v1", "Pod", json!({"spec": spec}), want);
    let into = |value: &str, place: &str, ty: &str| {
        format!("json: cannot unmarshal {value} into Go struct field {place} of type {ty}")
    };
    pod(json!({"containers": "x"}), &into("string", "PodSpec.spec.containers", "[]v1.Container"));
    pod(json!({"containers": [[]]}), &into("array", "PodSpec.spec.containers", "v1.Container"));
    pod(json!({"containers": [{"name": 1}]}), &into("number", "Container.spec.containers.name", "string"));
    pod(json!({"restartPolicy": true}), &into("bool", "PodSpec.spec.restartPolicy", "v1.RestartPolicy"));
    pod(json!({"nodeSelector": {"a": 1}}), &into("number", "PodSpec.spec.nodeSelector", "string"));
    pod(json!({"priority": 1.5}), &into("number 1.5", "PodSpec.spec.priority", "int32"));
    pod(json!({"priority": 2147483648u64}), &into("number 2147483648", "PodSpec.spec.priority", "int32"));
    pod(json!({"hostNetwork": "true"}), &into("string", "PodSpec.spec.hostNetwork", "bool"));
    pod(
        json!({"volumes": [{"emptyDir": "x"}]}),
        &into("string", "Volume.spec.volumes.VolumeSource.emptyDir", "v1.EmptyDirVolumeSource"),
    );
    pod(
        json!({"containers": [{"livenessProbe": {"tcpSocket": {"port": true}}}]}),
        &into("bool", "TCPSocketAction.spec.containers.livenessProbe.ProbeHandler.tcpSocket.port", "int32"),
    );
    pod(
        json!({"containers": [{"resources": {"limits": {"cpu": "abc"}}}]}),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    check(
        "v1",
        "Pod",
        json!({"metadata": {"creationTimestamp": 5}}),
        &into("number", "ObjectMeta.metadata.creationTimestamp", "string"),
    );
    check(
        "v1",
        "Pod",
        json!({"metadata": {"creationTimestamp": "now"}}),
        r#"parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006""#,
    );
    check("v1", "Secret", json!({"data": {"a": "!"}}), "illegal base64 data at input byte 0");
    // A type that decodes itself ends decoding; any other mistake is kept until the end.
    pod(
        json!({"containers": [{"name": 1, "resources": {"limits": {"cpu": "abc"}}}]}),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    pod(
        json!({"containers": [{"image": 1, "name": true}]}),
        &into("number", "Container.spec.containers.image", "string"),
    );
    check("v1", "Secret", json!({"data": {"a": [1, "x"]}}), &into("string", "Secret.data", "uint8"));
    check("v1", "Pod", json!([]), "json: cannot unmarshal array into Go value of type v1.Pod");
}

#[test]
fn schemas_of_crds_are_read_as_upstream_reads_them() {
    let ty = ty("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let crd = |schema: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
    let mut value = crd(json!({
        "default": {"b": 1.0, "a": null}, "enum": [null, 1], "minimum": 5,
        "items": {"bogus": 1, "type": "string"},
        "additionalProperties": true, "additionalItems": {"type": "string"},
        "dependencies": {"a": ["b"], "c": {"type": "string"}, "d": "x"},
        "properties": {"p": {"bogus": 1}},
        "example": null,
    }));
    let problems = normalize(ty, &mut value).expect("nothing is of the wrong type");
    let paths: Vec<_> = problems.into_iter().map(|problem| problem.path).collect();
    // Inside `items` another decoder runs, which is not strict.
    assert_eq!(paths, ["spec.versions[0].schema.openAPIV3Schema.properties.p.bogus"]);
    let mut out = Vec::new();
    write_json(ty, &value, &mut out).expect("it is canonical");
    let text = String::from_utf8(out).expect("JSON is text");
    let want = concat!(
        r#"{"openAPIV3Schema":{"default":{"a":null,"b":1},"minimum":5,"enum":[null,1],"items":{"type":"string"},"#,
        r#""properties":{"p":{}},"additionalProperties":true,"#,
        r#""dependencies":{"a":["b"],"c":{"type":"string"},"d":null},"additionalItems":{"type":"string"}}}"#
    );
    assert!(text.contains(want), "{text}");

    let fails = |schema: Value, want: &str| {
        let error = normalize(ty, &mut crd(schema)).expect_err(want);
        assert_eq!(error.to_string(), want);
    };
    fails(json!({"additionalProperties": "x"}), "boolean or JSON schema expected");
    fails(
        json!({"items": {"items": {"type": 1}}}),
        concat!(
            "json: cannot unmarshal number into Go struct field JSONSchemaProps.spec.versions.schema.",
            "openAPIV3Schema.items.items.type of type string"
        ),
    );
}

#[test]
fn the_slot_takes_the_resource_version_where_go_would_write_it() {
    let check = |metadata: Value, want: &str| {
        let value = json!({"metadata": metadata, "data": {"k": "<v>"}});
        let mut out = Vec::new();
        let slot = encode(ty("v1", "ConfigMap"), &value, &mut out).expect("there is a slot");
        assert_eq!(with_rv(out, slot, "7"), want);
    };
    let time = "2024-01-01T00:00:00Z";
    check(
        json!({"name": "a", "uid": "u", "resourceVersion": "3", "creationTimestamp": time, "labels": {"a": "b"}}),
        concat!(
            r#""metadata":{"name":"a","uid":"u","resourceVersion":"7","creationTimestamp":"2024-01-01T00:00:00Z","#,
            r#""labels":{"a":"b"}},"data":{"k":"\u003cv\u003e"}}"#
        ),
    );
    check(
        json!({"creationTimestamp": time}),
        concat!(
            r#""metadata":{"resourceVersion":"7","creationTimestamp":"2024-01-01T00:00:00Z"},"#,
            r#""data":{"k":"\u003cv\u003e"}}"#
        ),
    );
    check(
        json!({"generation": 2, "finalizers": ["f"]}),
        r#""metadata":{"resourceVersion":"7","generation":2,"finalizers":["f"]},"data":{"k":"\u003cv\u003e"}}"#,
    );
}

#[test]
fn fields_that_are_owned_stand_in_the_order_of_their_values() {
    let check = |fields: Value, want: &str| {
        let value = json!({"managedFields": [{"fieldsV1": fields}]});
        let metadata = table().type_named("meta/v1", "ObjectMeta").expect("a type");
        let mut out = Vec::new();
        write_json(metadata, &value, &mut out).expect("they are written");
        assert_eq!(String::from_utf8_lossy(&out), format!(r#"{{"managedFields":[{{"fieldsV1":{want}}}]}}"#));
    };
    let ports = json!({
        ".": {},
        "k:{\"containerPort\":443,\"protocol\":\"TCP\"}": {"v:10": {}, "v:9": {}, "v:\"a\"": {}, "f:x": {}},
        "k:{\"containerPort\":80,\"protocol\":\"UDP\"}": {},
        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {"v:\"a\"": {}, "v:\"a b\"": {}},
    });
    check(
        json!({"f:ports": ports}),
        concat!(
            r#"{"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{"v:\"a\"":{},"v:\"a b\"":{}},"#,
            r#""k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{},"#,
            r#""k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{"f:x":{},"v:9":{},"v:10":{},"v:\"a\"":{}}}}"#
        ),
    );
    check(json!({"x": {}, "v:2": {}, "v:10": {}}), r#"{"v:10":{},"v:2":{},"x":{}}"#);
}

#[test]
fn encoding_what_is_not_canonical_is_an_error_and_writes_nothing() {
    let check = |value: Value, want: EncodeError| {
        let mut out = b"before".to_vec();
        assert_eq!(encode(ty("v1", "Pod"), &value, &mut out), Err(want));
        assert_eq!(out, b"before");
    };
    check(json!([]), EncodeError::NotAnObject);
    check(json!({}), EncodeError::NoSlot);
    check(json!({"metadata": {"name": "a", "uid": "u"}}), EncodeError::NoSlot);
    check(json!({"metadata": []}), EncodeError::Mismatch { field: "metadata" });
    check(json!({"spec": {"priority": 1.5}}), EncodeError::Mismatch { field: "priority" });
    check(json!({"spec": {"containers": ["x"]}}), EncodeError::Mismatch { field: "containers" });
}

#[test]
fn deep_values_are_refused() {
    let mut deep = json!({});
    for _ in 0..DEPTH_MAX {
        deep = json!({"items": deep});
    }
    let crd = ty("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let mut value = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": deep}}]}});
    assert_eq!(write_json(crd, &value, &mut Vec::new()), Err(EncodeError::TooDeep));
    assert_eq!(normalize(crd, &mut value), Err(UnmarshalError::TooDeep));
    let mut raw = json!(1);
    for _ in 0..DEPTH_MAX + 1 {
        raw = json!([raw]);
    }
    assert_eq!(write_any(&raw, &mut Vec::new()), Err(EncodeError::TooDeep));
}

#[test]
fn custom_resources_are_written_with_sorted_keys() {
    let value = json!({
        "spec": {"z": 1.0, "a": [null, true, "<"], "resourceVersion": "kept"},
        "kind": "Foo",
        "apiVersion": "example.com/v1",
        "metadata": {"uid": "u", "name": "n", "resourceVersion": "3", "labels": {"resourceVersion": "kept"}},
    });
    let mut out = b"before".to_vec();
    let slot = encode_sorted(&value, &mut out).expect("uid follows resourceVersion");
    let want = concat!(
        r#"{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"labels":{"resourceVersion":"kept"},"name":"n","#,
        r#""resourceVersion":"9","uid":"u"},"spec":{"a":[null,true,"\u003c"],"resourceVersion":"kept","z":1}}"#
    );
    assert_eq!(with_rv(out.split_off(6), slot, "9"), want);

    let mut out = Vec::new();
    let without = json!({"metadata": {"name": "n"}, "spec": {}});
    assert_eq!(encode_sorted(&without, &mut out), Err(EncodeError::NoSlot));
    assert_eq!(out, b"");
}
