//! Messages by hand, what merges, and what is no message.

use forebay_apimachinery::{Lease, varint};
use serde_json::{Value, json};

use super::super::codec::{self, normalize};
use super::super::{TypeId, TypeKind, table};
use super::decode::OBJECTS_FREE;
use super::golden::goldens;
use super::*;

fn ty(package: &str, name: &str) -> TypeId {
    table().type_named(package, name).unwrap()
}

/// One field: a number and its value.
#[derive(Clone)]
enum Wire {
    Int(u32, u64),
    Fixed(u32, u64),
    Text(u32, &'static str),
    Raw(u32, Vec<u8>),
}

use Wire::{Fixed, Int, Raw, Text};

fn message(fields: &[Wire]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        let (Int(number, _) | Fixed(number, _) | Text(number, _) | Raw(number, _)) = field;
        let wire = match field {
            Int(..) => reader::VARINT,
            Fixed(..) => reader::FIXED64,
            Text(..) | Raw(..) => reader::BYTES,
        };
        varint::write(u64::from(*number) << 3 | u64::from(wire), &mut out);
        let bytes = match field {
            Int(_, value) => {
                varint::write(*value, &mut out);
                continue;
            }
            Fixed(_, value) => {
                out.extend_from_slice(&value.to_le_bytes());
                continue;
            }
            Text(_, text) => text.as_bytes(),
            Raw(_, bytes) => bytes,
        };
        varint::write(bytes.len() as u64, &mut out);
        out.extend_from_slice(bytes);
    }
    out
}

fn sub(number: u32, fields: &[Wire]) -> Wire {
    Raw(number, message(fields))
}

#[track_caller]
fn check_decode(package: &str, name: &str, fields: &[Wire], want: Value) {
    let ty = ty(package, name);
    let got = decode(ty, &message(fields), &Lease::of_server()).unwrap();
    assert_eq!(got, want);
    let mut normal = got.clone();
    assert_eq!(normalize(ty, &mut normal).unwrap(), []);
    assert_eq!(normal, got, "normalize finds something to do");
}

#[track_caller]
fn check_error(package: &str, name: &str, bytes: &[u8], want: &str) {
    assert_eq!(decode(ty(package, name), bytes, &Lease::of_server()).unwrap_err().to_string(), want);
}

#[track_caller]
fn check_encode(package: &str, name: &str, value: Value, want: &[Wire]) {
    let mut got = Vec::new();
    encode(ty(package, name), &value, &mut got).unwrap();
    assert_eq!(got, message(want));
}

#[test]
fn zeros_are_left_out_where_json_leaves_them_out() {
    check_decode(
        "core/v1",
        "ContainerPort",
        &[Text(1, ""), Int(2, 0), Int(3, 0), Text(4, ""), Text(5, "")],
        json!({"containerPort": 0}),
    );
    // Behind a pointer a zero is a value.
    check_decode("apps/v1", "DeploymentSpec", &[Int(1, 0)], json!({"replicas": 0}));
    check_decode("core/v1", "HTTPGetAction", &[sub(2, &[])], json!({"port": 0}));
    check_decode(
        "core/v1",
        "Pod",
        &[sub(1, &[sub(8, &[])]), sub(3, &[])],
        json!({"metadata": {}, "status": {}}),
    );
}

#[test]
fn the_last_of_several_values_counts_and_messages_merge() {
    check_decode("core/v1", "ObjectReference", &[Text(1, "a"), Text(1, "b")], json!({"kind": "b"}));
    check_decode("core/v1", "ObjectReference", &[Text(1, "a"), Text(1, "")], json!({}));
    let parts = [sub(1, &[Text(1, "a")]), sub(1, &[Text(3, "ns"), Text(14, "f")]), sub(1, &[Text(14, "g")])];
    check_decode(
        "core/v1",
        "Pod",
        &parts,
        json!({"metadata": {"name": "a", "namespace": "ns", "finalizers": ["f", "g"]}}),
    );
    let time = |seconds| sub(8, &[Int(1, seconds), Int(2, 7)]);
    check_decode("meta/v1", "ObjectMeta", &[time(1), sub(8, &[])], json!({}));
    check_decode("meta/v1", "ObjectMeta", &[time(0)], json!({"creationTimestamp": "1970-01-01T00:00:00Z"}));
    // An inline struct is a message of its own, and its members are the owner's.
    let volume = [sub(2, &[sub(2, &[Text(1, "Memory")])]), Text(1, "v"), sub(2, &[sub(2, &[])])];
    check_decode("core/v1", "Volume", &volume, json!({"name": "v", "emptyDir": {"medium": "Memory"}}));
}

#[test]
fn maps_are_lists_of_entries() {
    let entry = |fields: &[Wire]| sub(2, fields);
    check_decode(
        "core/v1",
        "Secret",
        &[
            entry(&[Text(1, "b"), Text(2, "x")]),
            entry(&[Text(2, "early"), Text(1, "a"), Int(9, 1)]),
            entry(&[Text(1, "b"), Text(2, "yes")]),
            entry(&[]),
        ],
        json!({"data": {"a": "ZWFybHk=", "b": "eWVz", "": ""}}),
    );
    check_decode(
        "core/v1",
        "ResourceRequirements",
        &[sub(1, &[Text(1, "cpu"), sub(2, &[Text(1, "0.5")])]), sub(1, &[Text(1, "memory")])],
        json!({"limits": {"cpu": "500m", "memory": "0"}}),
    );
    check_decode(
        "authentication/v1",
        "UserInfo",
        &[
            sub(4, &[Text(1, "k"), sub(2, &[Text(1, "a"), Text(1, "b")])]),
            sub(4, &[Text(1, "none"), sub(2, &[])]),
        ],
        json!({"extra": {"k": ["a", "b"], "none": []}}),
    );
}

#[test]
fn numbers_may_be_packed_and_are_cut_as_go_cuts_them() {
    let packed = [Raw(4, vec![1, 0x80, 1]), Int(4, 3)];
    check_decode("core/v1", "PodSecurityContext", &packed, json!({"supplementalGroups": [1, 128, 3]}));
    let port = |value| [Int(3, value)];
    check_decode("core/v1", "ContainerPort", &port(u64::MAX), json!({"containerPort": -1}));
    check_decode("core/v1", "ContainerPort", &port((1 << 32) + 5), json!({"containerPort": 5}));
    check_decode("core/v1", "Secret", &[Int(5, 2)], json!({"immutable": true}));
    let float = |value: f64| [Fixed(9, value.to_bits())];
    check_decode("apiextensions/v1", "JSONSchemaProps", &float(5.0), json!({"maximum": 5}));
    check_decode("apiextensions/v1", "JSONSchemaProps", &float(-0.5), json!({"maximum": -0.5}));
    check_decode("apiextensions/v1", "JSONSchemaProps", &float(1e300), json!({"maximum": 1e300}));
    let infinite = message(&float(f64::INFINITY));
    check_error("apiextensions/v1", "JSONSchemaProps", &infinite, "json: unsupported value: +Inf");
}

#[test]
fn ints_or_strings_know_which_they_are() {
    let port = |fields: &[Wire], want: Value| {
        check_decode("core/v1", "HTTPGetAction", &[sub(2, fields)], json!({"port": want}));
    };
    port(&[Int(1, 0), Int(2, 80), Text(3, "ignored")], json!(80));
    port(&[Int(1, 1), Int(2, 80), Text(3, "http")], json!("http"));
    port(&[Int(1, 1)], json!(""));
    let neither = message(&[sub(2, &[Int(1, 2)])]);
    check_error("core/v1", "HTTPGetAction", &neither, "impossible IntOrString.Type");
}

#[test]
fn schemas_or_something_are_told_apart() {
    let check = |fields: &[Wire], want| check_decode("apiextensions/v1", "JSONSchemaProps", fields, want);
    check(&[sub(30, &[Int(1, 1)])], json!({"additionalProperties": true}));
    check(&[sub(30, &[])], json!({"additionalProperties": false}));
    check(&[sub(30, &[Int(1, 1), sub(2, &[Text(5, "x")])])], json!({"additionalProperties": {"type": "x"}}));
    check(&[sub(24, &[sub(1, &[Text(5, "x")])])], json!({"items": {"type": "x"}}));
    check(&[sub(24, &[sub(2, &[Text(5, "x")]), sub(2, &[])])], json!({"items": [{"type": "x"}, {}]}));
    check(&[sub(24, &[])], json!({}));
    check(
        &[sub(32, &[Text(1, "k"), sub(2, &[Text(2, "p"), sub(1, &[])])])],
        json!({"dependencies": {"k": ["p"]}}),
    );
    check(&[sub(8, &[Text(1, "[1,null]")]), sub(20, &[])], json!({"default": [1, null], "enum": [null]}));
}

#[test]
fn embedded_json_is_parsed() {
    let data = |text| message(&[sub(2, &[Text(1, text)])]);
    let revision = ty("apps/v1", "ControllerRevision");
    assert_eq!(
        decode(revision, &data(r#"{"a":[1]}"#), &Lease::of_server()).unwrap(),
        json!({"data": {"a": [1]}})
    );
    assert_eq!(decode(revision, &data("null"), &Lease::of_server()).unwrap(), json!({}));
    assert_eq!(decode(revision, &data(""), &Lease::of_server()).unwrap(), json!({}));
    assert!(matches!(
        decode(revision, &data("{"), &Lease::of_server()),
        Err(DecodeError::Json { field: "RawExtension", .. })
    ));
    assert!(matches!(decode(revision, &data("k8s\0"), &Lease::of_server()), Err(DecodeError::Json { .. })));
}

#[test]
fn unknown_fields_are_passed_over() {
    let group = [&[0xa3, 0x06][..], &[0x08, 0x01, 0x0b, 0x0c], &[0xa4, 0x06]].concat(); // 100 { 1: 1, 1 { } }
    let mut bytes = message(&[Int(100, 5), Fixed(101, 1), Text(102, "x")]);
    bytes.extend_from_slice(&group);
    bytes.extend_from_slice(&[0x9d, 0x06, 0, 0, 0, 0]); // 99: four bytes
    bytes.extend(message(&[Text(1, "Pod")]));
    assert_eq!(
        decode(ty("core/v1", "ObjectReference"), &bytes, &Lease::of_server()).unwrap(),
        json!({"kind": "Pod"})
    );
}

#[test]
fn what_is_no_message_is_named_as_go_names_it() {
    let check = |bytes: &[u8], want: &str| check_error("core/v1", "Pod", bytes, want);
    check(&[0x0a], "unexpected EOF");
    check(&[0x0a, 5, 1], "unexpected EOF");
    check(&[0x80], "unexpected EOF");
    check(&[0xff; 11], "proto: integer overflow");
    check(&[0x0b], "proto: wrong wireType = 3 for field ObjectMeta");
    check(&[0x08, 1], "proto: wrong wireType = 0 for field ObjectMeta");
    check(&[0x10, 1], "proto: wrong wireType = 0 for field Spec");
    check(&[0x0c], "proto: Pod: wiretype end group for non-group");
    check(&[0x00, 0], "proto: Pod: illegal tag 0 (wire type 0)");
    check(&[0x7e], "proto: illegal wireType 6");
    check(&[0x7b, 0x0c, 0x0c], "proto: Pod: wiretype end group for non-group");
    let negative = [&[0x0a][..], &[0xff; 9], &[1]].concat();
    check(&negative, "proto: negative length found during unmarshaling");
    check_error(
        "core/v1",
        "ResourceRequirements",
        &message(&[sub(1, &[sub(2, &[Text(1, "one")])])]),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    check_error(
        "meta/v1",
        "ObjectMeta",
        &message(&[sub(8, &[Int(1, 1 << 62)])]),
        "time 4611686018427387904s is not in the years 0 to 9999",
    );
}

#[test]
fn bytes_that_are_no_utf8_become_replacement_characters() {
    let bytes = Raw(1, vec![b'a', 0xff, 0xe2, 0x82, b'b']);
    check_decode("core/v1", "ObjectReference", &[bytes], json!({"kind": "a\u{fffd}\u{fffd}\u{fffd}b"}));
}

#[test]
fn depth_and_size_are_bounded() {
    let schema = ty("apiextensions/v1", "JSONSchemaProps");
    let nest = |levels: usize| (0..levels).fold(Vec::new(), |inner, _| message(&[Raw(28, inner)]));
    let shallow = decode(schema, &nest(100), &Lease::of_server()).unwrap();
    let mut again = Vec::new();
    encode(schema, &shallow, &mut again).unwrap();
    assert_eq!(decode(schema, &again, &Lease::of_server()).unwrap(), shallow);
    assert_eq!(decode(schema, &nest(2000), &Lease::of_server()), Err(DecodeError::TooDeep));
    let groups = [0xa3, 0x06].repeat(100_000);
    assert_eq!(decode(schema, &groups, &Lease::of_server()), Err(DecodeError::UnexpectedEof));

    let deep_json = format!("{}{}", "[".repeat(120), "]".repeat(120)).into_bytes();
    let default = message(&[sub(8, &[Raw(1, deep_json)])]);
    let deep = (0..60).fold(default, |inner, _| message(&[Raw(28, inner)]));
    assert_eq!(decode(schema, &deep, &Lease::of_server()), Err(DecodeError::TooDeep));

    let pods = |count: usize| [0x12, 0].repeat(count); // empty items
    let list = ty("core/v1", "PodList");
    assert!(decode(list, &pods(OBJECTS_FREE / 2), &Lease::of_server()).is_ok());
    assert_eq!(decode(list, &pods(OBJECTS_FREE * 2), &Lease::of_server()), Err(DecodeError::TooMany));
}

#[test]
fn what_is_no_pointer_is_written_though_it_is_zero() {
    let port = [Text(1, ""), Int(2, 0), Int(3, 80), Text(4, ""), Text(5, "")];
    check_encode("core/v1", "ContainerPort", json!({"containerPort": 80}), &port);
    let selector = [Text(1, ""), Text(2, "r"), sub(3, &[Text(1, "0")])];
    check_encode("core/v1", "ResourceFieldSelector", json!({"resource": "r"}), &selector);
    let get = [Text(1, ""), sub(2, &[Int(1, 0), Int(2, 0), Text(3, "")]), Text(3, ""), Text(4, "")];
    check_encode("core/v1", "HTTPGetAction", json!({}), &get);
    check_encode("core/v1", "HTTPGetAction", json!({"httpHeaders": [], "port": null}), &get);
    let meta = [
        Text(1, "n"),
        Text(2, ""),
        Text(3, ""),
        Text(4, ""),
        Text(5, ""),
        Text(6, ""),
        Int(7, 0),
        sub(8, &[]),
        sub(11, &[Text(1, "a"), Text(2, "1")]),
        sub(11, &[Text(1, "b"), Text(2, "")]),
    ];
    check_encode("meta/v1", "ObjectMeta", json!({"name": "n", "labels": {"b": "", "a": "1"}}), &meta);
    check_encode("core/v1", "Volume", json!({"name": "v"}), &[Text(1, "v"), sub(2, &[])]);
    check_encode(
        "apps/v1",
        "ControllerRevision",
        json!({"metadata": {}, "revision": -1}),
        &[sub(1, &[&[Text(1, "")], &meta[1..8]].concat()), sub(2, &[]), Int(3, u64::MAX)],
    );
}

#[test]
fn options_and_events_are_messages_too() {
    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}, "dryRun": ["All"]});
    let wire = [Int(1, 0), sub(2, &[Text(1, "u")]), Text(5, "All")];
    check_encode("meta/v1", "DeleteOptions", options.clone(), &wire);
    check_decode("meta/v1", "DeleteOptions", &wire, options);
    let verbs = sub(4, &[Text(1, "get"), Text(1, "list")]);
    let resource = [
        Text(1, "pods"),
        Int(2, 1),
        Text(3, "Pod"),
        verbs,
        Text(6, ""),
        Text(8, ""),
        Text(9, ""),
        Text(10, ""),
    ];
    let value = json!({"name": "pods", "namespaced": true, "kind": "Pod", "verbs": ["get", "list"]});
    check_encode("meta/v1", "APIResource", value, &resource);
    check_decode("meta/v1", "APIResource", &[sub(4, &[])], json!({"verbs": []}));
    // A map may hold the zero time.
    let pods = [sub(2, &[Text(1, "a"), sub(2, &[])])];
    let status = json!({"disruptedPods": {"a": null}});
    check_decode("policy/v1", "PodDisruptionBudgetStatus", &pods, status.clone());
    let counts = [Int(3, 0), Int(4, 0), Int(5, 0), Int(6, 0)];
    let all = [&[Int(1, 0)][..], &pods, &counts].concat();
    check_encode("policy/v1", "PodDisruptionBudgetStatus", status, &all);

    let (envelope, mut pod, mut event) = (Envelope::new("v1", "Pod"), Vec::new(), Vec::new());
    encode(ty("core/v1", "Pod"), &json!({"metadata": {"name": "a"}}), &mut pod).unwrap();
    open_watch_frame("ADDED", envelope.len_around(pod.len()), &mut event);
    envelope.write(&pod, &mut event);
    let (len, event) = event.split_first_chunk().unwrap();
    assert_eq!(u32::from_be_bytes(*len) as usize, event.len());
    let read = decode_watch_event(event).unwrap();
    assert_eq!(read.kind, "ADDED");
    let envelope = decode_envelope(read.object).unwrap();
    assert_eq!((&*envelope.api_version, &*envelope.kind), ("v1", "Pod"));
    let got = decode(ty("core/v1", "Pod"), envelope.raw, &Lease::of_server()).unwrap();
    assert_eq!(got["metadata"], json!({"name": "a"}));
}

#[test]
fn envelopes_are_checked() {
    let check = |bytes: &[u8], want: &str| assert_eq!(decode_envelope(bytes).unwrap_err().to_string(), want);
    check(b"", "empty data");
    check(b"k8s\0", "empty body");
    let no_prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    check(b"k8s", no_prefix);
    check(b"{\"kind\":\"Pod\"}", no_prefix);
    check(b"k8s\0\x08\x01", "proto: wrong wireType = 0 for field TypeMeta");
    check(b"k8s\0\x0a\x05", "unexpected EOF");

    for len in [0, 0x7f, 0x80, 200, 0x3fff, 0x4000] {
        let (envelope, mut body) = (Envelope::new("apps/v1", "X"), Vec::new());
        let message = vec![7; len];
        envelope.write(&message, &mut body);
        assert_eq!(body.len(), envelope.len_around(len));
        let read = decode_envelope(&body).unwrap();
        assert_eq!((&*read.api_version, &*read.kind, read.raw), ("apps/v1", "X", &message[..]));
        let head: &[u8] = b"k8s\0\x0a\x0c\x0a\x07apps/v1\x12\x01X\x12";
        assert!(body.starts_with(head) && body.ends_with(b"\x1a\0\x22\0"));
    }
}

#[test]
fn a_list_is_written_item_by_item() {
    let (list, pod) = (ty("core/v1", "PodList"), ty("core/v1", "Pod"));
    let items = [json!({"metadata": {"name": "a"}}), json!({"metadata": {"name": "b".repeat(300)}})];
    let metadata = json!({"resourceVersion": "7"});
    let (mut whole, mut meta) = (Vec::new(), Vec::new());
    encode(list, &json!({"metadata": &metadata, "items": &items}), &mut whole).unwrap();
    encode(ty("meta/v1", "ListMeta"), &metadata, &mut meta).unwrap();
    let mut parts = ListForm::MetadataFirst.metadata_field(&meta);
    for item in &items {
        let (mut message, before) = (Vec::new(), parts.len());
        encode(pod, item, &mut message).unwrap();
        ListForm::MetadataFirst.open_item(message.len(), &mut parts);
        parts.extend_from_slice(&message);
        assert_eq!(parts.len() - before, ListForm::MetadataFirst.item_len(message.len()));
    }
    assert_eq!(parts, whole);
    for kind in table().kinds() {
        let Some(list) = kind.list else { continue };
        let numbers = ["metadata", "items"].map(|name| table().member(list, name).unwrap().proto);
        assert_eq!(numbers, [1, 2], "{}", kind.kind);
    }
}

#[test]
fn another_revision_is_put_into_a_message() {
    let pod = ty("core/v1", "Pod");
    let message = |version: &str| {
        let (mut out, filler) = (Vec::new(), "x".repeat(60));
        let metadata = json!({"name": filler, "resourceVersion": version, "labels": {"a": "b"}});
        encode(pod, &json!({"metadata": metadata, "spec": {"nodeName": "n"}}), &mut out).unwrap();
        out
    };
    for old in ["", "9", "123456789"] {
        for new in ["", "9", "10", "18446744073709551615"] {
            assert_eq!(with_resource_version(&message(old), new).unwrap(), message(new), "{old} {new}");
        }
    }
    let (mut partial, whole) = (Vec::new(), message("7"));
    let metadata = decode(pod, &whole, &Lease::of_server()).unwrap()["metadata"].clone();
    encode(ty("meta/v1", "PartialObjectMetadata"), &json!({"metadata": metadata}), &mut partial).unwrap();
    assert_eq!(metadata_field(&whole).unwrap(), partial);
    for broken in [&b""[..], b"\x0a", b"\x0a\x05ab", b"\x0a\0", b"\x12\0", b"\x0a\x02\x32\x09"] {
        assert!(with_resource_version(broken, "1").is_err(), "{broken:?}");
    }
}

/// What the splice of a revision, and metadata alone, rely on.
#[test]
fn every_kind_that_is_served_has_its_metadata_first() {
    let meta = ty("meta/v1", "ObjectMeta");
    assert_eq!(table().member(meta, "resourceVersion").unwrap().proto, 6);
    for resource in table().resources() {
        let kind = table().kind(resource.group, resource.version, resource.kind).unwrap();
        let metadata = table().member(kind.ty, "metadata").unwrap();
        assert_eq!((metadata.proto, metadata.ty), (1, meta), "{}", resource.kind);
    }
}

#[test]
fn a_text_and_its_value_are_one_message() {
    for golden in goldens().unwrap_or_default() {
        let (ty, mut value) = (golden.kind.ty, golden.json);
        normalize(ty, &mut value).unwrap();
        let (mut text, mut from_text, mut from_value) = (Vec::new(), Vec::new(), Vec::new());
        codec::write_json(ty, &value, &mut text).unwrap();
        encode_json(ty, &text, &mut from_text).unwrap();
        encode(ty, &value, &mut from_value).unwrap();
        assert!(from_text == from_value, "{}", golden.name);
    }
    let mut out = vec![7];
    assert_eq!(encode_json(ty("core/v1", "Pod"), b"{", &mut out), Err(EncodeError::NotAnObject));
    assert_eq!(out, [7]);
}

#[test]
fn a_value_that_is_not_canonical_leaves_the_buffer_alone() {
    let mut out = vec![1, 2, 3];
    for (package, name, value) in [
        ("core/v1", "Pod", json!([])),
        ("core/v1", "Pod", json!({"metadata": {"name": 5}})),
        ("core/v1", "Pod", json!({"metadata": {"creationTimestamp": "yesterday"}})),
        ("core/v1", "ContainerPort", json!({"containerPort": 1u64 << 40})),
        ("core/v1", "Secret", json!({"data": {"a": "?"}})),
    ] {
        assert!(matches!(encode(ty(package, name), &value, &mut out), Err(EncodeError::Mismatch { .. })));
        assert_eq!(out, [1, 2, 3]);
    }
}

#[test]
fn every_numbered_field_has_a_form() {
    for kind in table().kinds() {
        assert_eq!(is_message(kind.ty), kind.kind != "Table", "{}", kind.kind);
    }
    assert!(!is_message(ty("meta/v1", "TableRow")));
    for (id, _) in table().types() {
        for field in table().fields(id).iter().filter(|field| field.proto != 0) {
            let inner = table().ty(table().elem(field.ty));
            assert_ne!(table().ty(field.ty).kind, TypeKind::Any, "{}", field.name);
            assert_ne!(inner.kind, TypeKind::Any, "{}", field.name);
        }
    }
}

#[test]
fn a_message_cut_anywhere_is_an_answer() {
    for golden in goldens().unwrap_or_default().iter().filter(|golden| golden.name == "core.v1.Service") {
        let raw = decode_envelope(&golden.body).unwrap().raw;
        let mut errors = 0;
        for len in 0..raw.len() {
            errors += usize::from(decode(golden.kind.ty, &raw[..len], &Lease::of_server()).is_err());
        }
        assert!(errors > raw.len() * 9 / 10, "{errors}");
        for len in 5..golden.body.len() {
            let _ = decode_envelope(&golden.body[..len]);
        }
    }
}

/// A small generator of the same numbers each time (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn flipped_bytes_are_refused_or_read_as_something_that_can_be_written() {
    let mut dice = Dice(0x5eed);
    let mut read = 0;
    for golden in goldens().unwrap_or_default() {
        let raw = decode_envelope(&golden.body).unwrap().raw;
        for _ in 0..12 {
            let mut bytes = raw.to_vec();
            for _ in 0..=dice.below(4) {
                let at = dice.below(bytes.len());
                bytes[at] = dice.below(256) as u8;
            }
            let Ok(value) = decode(golden.kind.ty, &bytes, &Lease::of_server()) else { continue };
            read += 1;
            let mut normal = value.clone();
            assert_eq!(normalize(golden.kind.ty, &mut normal).unwrap(), [], "{}", golden.name);
            assert_eq!(normal, value, "{}", golden.name);
            let mut out = Vec::new();
            encode(golden.kind.ty, &value, &mut out).unwrap();
            assert_eq!(
                decode(golden.kind.ty, &out, &Lease::of_server())
                    .map(|again| written(golden.kind.ty, &again))
                    .unwrap(),
                written(golden.kind.ty, &value),
                "{}",
                golden.name
            );
        }
    }
    assert!(read > 0 || goldens().is_none());
}

fn written(ty: TypeId, value: &Value) -> String {
    let mut out = Vec::new();
    super::super::codec::write_json(ty, value, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
