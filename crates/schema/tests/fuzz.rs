//! Every parser of the schemas withstands any input, and what it made canonical stays as it is.

use forebay_apimachinery::quantity::{self, Precision};
use forebay_apimachinery::{Lease, json, steps};
use forebay_fuzz::{Corpus, charged, gist, paid, peak_of, run, stepped};
use forebay_schema::builtin::{TypeId, codec, protobuf, table};
use forebay_schema::crd::{Definition, JsonPath, check, defaults};
use forebay_schema::strategic;
use serde_json::Value;

const POD: &[u8] = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null,"labels":{"a":"b"},"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u"}]},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m"}},"ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":"http"}}}],"nodeSelector":{},"tolerations":[{"operator":"Exists"}]}}"#;
const SERVICE: &[u8] = br#"{"kind":"Service","apiVersion":"v1","metadata":{"name":"s","managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}]},"spec":{"ports":[{"port":80,"targetPort":"web"}],"clusterIPs":["1.2.3.4"]}}"#;
const ROLE: &[u8] = br#"{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"r"},"rules":[{"verbs":["*"],"apiGroups":[""],"resources":["pods"]}]}"#;
const CRD: &[u8] = br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ws.e.com"},"spec":{"group":"e.com","scope":"Namespaced","names":{"plural":"ws","kind":"W"},"versions":[{"name":"v1","served":true,"storage":true,"selectableFields":[{"jsonPath":".spec.a"}],"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".spec.a"}],"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^a+$","maxLength":5,"default":"aa"},"n":{"type":"integer","minimum":0,"maximum":9,"multipleOf":1},"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}},"m":{"type":"object","additionalProperties":{"x-kubernetes-int-or-string":true}},"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},"o":{"type":"string","format":"date-time","nullable":true,"enum":["x",null]}}},"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}"#;

const JSON_WORDS: &[&str] =
    &["{}", "[]", "null", "true", "\"\"", "-1", "1.5", "\"a\"", "{\"a\":", "[{", "\"1k\"", "\"0.1Ei\""];
const SCHEMA_WORDS: &[&str] = &[
    "\"object\"",
    "\"array\"",
    "\"integer\"",
    "\"anyOf\":[{}]",
    "\"not\":{}",
    "\"allOf\"",
    "\"$ref\"",
    "\"default\":{}",
    "\"x-kubernetes-preserve-unknown-fields\":true",
    "\"uniqueItems\":true",
    "\"pattern\":\"(\"",
    "\"format\":\"ipv4\"",
    "null",
    "[]",
    "{}",
    "\"set\"",
    "\"nullable\":true",
    "\"additionalProperties\":false",
];

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// What `work` gives, its steps told to the law.
fn counting<T>(work: impl FnOnce() -> T) -> T {
    let mut given = None;
    stepped(steps::counted(|| given = Some(work())));
    given.expect("it was done")
}

/// The built-in type that a value says it is.
fn type_of(value: &Value) -> Option<TypeId> {
    let (group, version) =
        value["apiVersion"].as_str()?.rsplit_once('/').unwrap_or(("", value["apiVersion"].as_str()?));
    table().kind(group, version, value["kind"].as_str()?).map(|kind| kind.ty)
}

#[test]
fn fuzz_built_in_objects() {
    let corpus = Corpus { inputs: &[POD, SERVICE, ROLE], words: JSON_WORDS, ..Corpus::default() };
    run("built-in objects", &corpus, |input| {
        counting(|| {
            let mut value = json::parse(input, &Lease::of_server()).map_err(gist)?.value;
            let ty = type_of(&value).ok_or("no kind")?;
            let problems = codec::normalize(ty, &mut value).map_err(gist)?;
            let canonical = value.clone();
            let again = codec::normalize(ty, &mut value).expect("what is canonical is read");
            assert!(again.is_empty(), "{again:?}");
            assert_eq!(value, canonical);
            let (mut stored, mut message) = (Vec::new(), Vec::new());
            codec::encode(ty, &canonical, &mut stored).map_err(gist)?;
            // It begins behind the kind.
            serde_json::from_slice::<Value>(&[b"{", &*stored].concat()).expect("what is stored is JSON");
            protobuf::encode(ty, &canonical, &mut message).map_err(gist)?;
            let mut decoded =
                protobuf::decode(ty, &message, &Lease::of_server()).expect("what was encoded is decoded");
            codec::normalize(ty, &mut decoded).expect("and canonical");
            let mut twice = Vec::new();
            protobuf::encode(ty, &decoded, &mut twice).expect("and encoded");
            assert_eq!(message, twice, "{canonical}");
            Ok::<_, String>((problems.len().min(3), stored.len().ilog2()))
        })
    });
}

#[test]
fn fuzz_protobuf() {
    let message = |json: &[u8]| {
        let mut value = json::parse(json, &Lease::of_server()).expect("JSON").value;
        let ty = type_of(&value).expect("a kind");
        codec::normalize(ty, &mut value).expect("canonical");
        let mut message = vec![ty.index() as u8];
        protobuf::encode(ty, &value, &mut message).expect("a message");
        message
    };
    let messages = [POD, SERVICE, ROLE].map(message);
    let types: Vec<TypeId> = [POD, SERVICE, ROLE]
        .iter()
        .map(|json| type_of(&json::parse(json, &Lease::of_server()).expect("JSON").value).expect("a kind"))
        .collect();
    let inputs: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    run(
        "protobuf",
        &Corpus { inputs: &inputs, words: &["\u{8}\u{1}", "\n\0", "\x1a\x02"], ..Corpus::default() },
        |input| {
            let (which, message) = input.split_first().ok_or("empty")?;
            let ty = types[usize::from(*which) % types.len()];
            let mut straight = Vec::new();
            let slot = protobuf::stored_json(ty, message, protobuf::UnknownFields::PassedOver, &mut straight);
            let lease = Lease::of_one_tree();
            let (value, peak) = peak_of(|| protobuf::decode(ty, message, &lease));
            paid(message.len(), peak, lease.peak(), 16 << 10);
            let value = value.map_err(gist)?;
            if let Some(slot) = slot {
                let (mut value, mut stored) = (value.clone(), Vec::new());
                codec::normalize(ty, &mut value).expect("what was decoded is canonical");
                if let Some(metadata) = value["metadata"].as_object_mut() {
                    metadata.remove("resourceVersion");
                }
                assert_eq!(codec::encode(ty, &value, &mut stored), Ok(slot));
                assert_eq!(String::from_utf8_lossy(&straight), String::from_utf8_lossy(&stored));
            }
            let mut encoded = Vec::new();
            protobuf::encode(ty, &value, &mut encoded).map_err(gist)?;
            let again =
                protobuf::decode(ty, &encoded, &Lease::of_server()).expect("what was encoded is decoded");
            let mut twice = Vec::new();
            protobuf::encode(ty, &again, &mut twice).expect("and encoded");
            assert_eq!(encoded, twice);
            Ok::<_, String>((slot.is_some(), encoded.len().max(1).ilog2()))
        },
    );
    let envelope =
        [&protobuf::ENVELOPE_PREFIX[..], b"\n\x09\n\x02v1\x12\x03Pod\x12\x02\n\0\x1a\0\x22\0"].concat();
    let inputs: &[&[u8]] = &[&envelope, b"\n\x05ADDED\x12\x04\n\x02hi"];
    run("protobuf envelopes", &Corpus { inputs, ..Corpus::default() }, |input| {
        let envelope = protobuf::decode_envelope(input).map(|unknown| unknown.raw.len()).map_err(gist);
        let event = protobuf::decode_watch_event(input).map(|event| event.object.len()).map_err(gist);
        (envelope, event)
    });
}

#[test]
fn fuzz_strategic_merge() {
    let patch = |original: &[u8], patch: &str| [original, b"\0", patch.as_bytes()].concat();
    let inputs = [
        patch(
            POD,
            r#"{"spec":{"containers":[{"name":"c","image":"j"},{"name":"d","$patch":"delete"}],"$setElementOrder/containers":[{"name":"c"}]}}"#,
        ),
        patch(
            POD,
            r#"{"metadata":{"labels":{"a":null,"$patch":"replace"},"$deleteFromPrimitiveList/finalizers":["x"]},"spec":{"$retainKeys":["containers"]}}"#,
        ),
        patch(SERVICE, r#"{"spec":{"ports":[{"port":80,"name":"x"},{"$patch":"replace"}]}}"#),
    ];
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let words = &[
        "$patch",
        "\"delete\"",
        "\"replace\"",
        "\"merge\"",
        "$setElementOrder/ports",
        "$retainKeys",
        "null",
        "[]",
        "{}",
        "\0",
    ];
    run("strategic merge", &Corpus { inputs: &inputs, words, one_in: 2, ..Corpus::default() }, |input| {
        counting(|| {
            let at = input.iter().position(|byte| *byte == 0).ok_or("one part")?;
            let original = json::parse(&input[..at], &Lease::of_server()).map_err(gist)?.value;
            let patch = json::parse(&input[at + 1..], &Lease::of_server()).map_err(gist)?.value;
            let ty = type_of(&original).ok_or("no kind")?;
            let merged = strategic::merge(ty, original, patch).map_err(gist)?;
            let same = strategic::merge(ty, merged.clone(), Value::Null).expect("nothing is merged");
            assert_eq!(same, merged);
            Ok::<_, String>(merged.to_string().len().ilog2())
        })
    });
}

#[test]
fn fuzz_definitions() {
    let corpus = Corpus { inputs: &[CRD], words: SCHEMA_WORDS, one_in: 4, ..Corpus::default() };
    run("definitions", &corpus, |input| {
        counting(|| {
            let mut crd = json::parse(input, &Lease::of_server()).map_err(gist)?.value;
            let ty = type_of(&crd).ok_or("no kind")?;
            codec::normalize(ty, &mut crd).map_err(gist)?;
            defaults::apply(&mut crd);
            check::warnings(&crd, None);
            let errors = check::validate_create(&crd);
            let errors: Vec<String> = errors.iter().take(3).map(|error| gist(error.message())).collect();
            if errors.is_empty() {
                // What is accepted can be served.
                let definition = Definition::compile(&crd);
                for version in &definition.versions {
                    let mut object = serde_json::json!({"metadata": {"name": "a"}, "spec": {"a": "b", "l": [{}], "m": {"x": 1}}});
                    if version.normalize(&mut object, &Lease::of_server()).is_ok() {
                        version.validate(&object, Some(&object));
                    }
                }
            }
            Ok::<_, String>(errors)
        })
    });
}

#[test]
fn fuzz_custom_objects() {
    let mut crd = json::parse(CRD, &Lease::of_server()).expect("JSON").value;
    defaults::apply(&mut crd);
    assert_eq!(check::validate_create(&crd), []);
    let definition = Definition::compile(&crd);
    let version = definition.storage_version();
    let inputs: &[&[u8]] = &[
        br#"{"metadata":{"name":"a"},"spec":{"a":"aaa","n":3,"l":[{"k":"x"},{"k":"y"}],"m":{"p":1,"q":"2%"},"e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"}},"o":null},"status":{"any":[1]}}"#,
    ];
    run("custom objects", &Corpus { inputs, words: JSON_WORDS, ..Corpus::default() }, |input| {
        counting(|| {
            let mut object = json::parse(input, &Lease::of_server()).map_err(gist)?.value;
            let lease = Lease::of_one_tree();
            let unknown = version.normalize(&mut object, &lease).map_err(gist)?;
            charged(lease.peak());
            let canonical = object.clone();
            assert_eq!(version.normalize(&mut object, &Lease::of_server()), Ok(Vec::new()), "{canonical}");
            assert_eq!(object, canonical);
            let errors = version.validate(&object, None);
            // A change that changes nothing adds no violation (ratcheting).
            assert!(version.validate(&object, Some(&object)).len() <= errors.len(), "{canonical}");
            let errors: Vec<String> = errors.iter().take(3).map(|error| gist(error.message())).collect();
            Ok::<_, String>((unknown.len().min(3), errors))
        })
    });
}

#[test]
fn fuzz_json_path() {
    let object = json::parse(POD, &Lease::of_server()).expect("JSON").value;
    let inputs: &[&[u8]] =
        &[b".spec.containers[0].name", b".a['b']..c", b".l[?(@.k==\"x\")].v", b".l[1:3:1]", b"[*].a.*"];
    let words = &["[", "]", "..", "*", "?(", "@", "==", "<=", "'", "\"", "-1", ":", ",", ")", "\\"];
    run("JSONPath", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let path = JsonPath::parse(&text(input)).map_err(gist)?;
        Ok::<_, String>((path.find(&object).len().min(20), path.members().is_some()))
    });
}

#[test]
fn fuzz_quantities_and_times() {
    let inputs: &[&[u8]] = &[b"100m", b"1.5Gi", b"12e6", b"-0.000001", b"1E3"];
    let words = &["Ki", "Ei", "n", "u", "m", "k", "e-9", "E5", "+", ".", "9999999999999999999"];
    run("quantities", &Corpus { inputs, words, bytes_max: 64, ..Corpus::default() }, |input| {
        let input = text(input);
        let canonical = quantity::canonical(&input, Precision::Nano).map_err(gist)?;
        assert_eq!(quantity::canonical(&canonical, Precision::Nano).as_deref(), Ok(&*canonical));
        Ok::<_, String>(canonical.chars().filter(|c| !c.is_ascii_digit()).collect::<String>())
    });
    let inputs: &[&[u8]] =
        &[b"2026-11-21T21:00:00Z", b"2026-02-29T23:59:60.123456789+23:59", b"0001-01-01T00:00:00Z"];
    let words = &["Z", "T", "-00:00", ".5", "24:00:00", "9999", "t", ","];
    run("times", &Corpus { inputs, words, bytes_max: 64, ..Corpus::default() }, |input| {
        let input = text(input);
        let (time, micro) = (codec::canonical_time(&input), codec::canonical_micro_time(&input));
        // Fractions are cut off after it is known not to be Go's zero time, which is no time; in Go as well.
        if let Ok(Some(canonical)) = &time
            && canonical != "0001-01-01T00:00:00Z"
        {
            assert_eq!(codec::canonical_time(canonical), Ok(Some(canonical.as_ref().into())));
        }
        if let Ok(Some(canonical)) = &micro
            && canonical != "0001-01-01T00:00:00.000000Z"
        {
            assert_eq!(codec::canonical_micro_time(canonical), Ok(Some(canonical.as_ref().into())));
        }
        (time.map(|time| time.is_some()).map_err(gist), micro.map(|time| time.is_some()).map_err(gist))
    });
}
