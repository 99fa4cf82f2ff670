//! Every parser of the schemas withstands any input, and what it made canonical stays as it is.

use forebay_apimachinery::quantity::{self, Precision};
use forebay_apimachinery::{Lease, json, steps};
use forebay_fuzz::{Corpus, gist, paid, peak_of, run, stepped};
use forebay_schema::builtin::{TypeId, codec, protobuf, table};
use forebay_schema::strategic;
use serde_json::Value;

const POD: &[u8] = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null,"labels":{"a":"b"},"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u"}]},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m"}},"ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":"http"}}}],"nodeSelector":{},"tolerations":[{"operator":"Exists"}]}}"#;
const SERVICE: &[u8] = br#"{"kind":"Service","apiVersion":"v1","metadata":{"name":"s","managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}]},"spec":{"ports":[{"port":80,"targetPort":"web"}],"clusterIPs":["1.2.3.4"]}}"#;
const ROLE: &[u8] = br#"{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"r"},"rules":[{"verbs":["*"],"apiGroups":[""],"resources":["pods"]}]}"#;

const JSON_WORDS: &[&str] =
    &["{}", "[]", "null", "true", "\"\"", "-1", "1.5", "\"a\"", "{\"a\":", "[{", "\"1k\"", "\"0.1Ei\""];
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
