//! Every golden object of Kubernetes is kept the same whether it comes as JSON or as protobuf.
//!
//! In: golden files. Out: what is kept of each, by each way it may come. Never: reads a file itself.

use forebay_apimachinery::field_path::FieldPath;
use forebay_apimachinery::resource::split_api_version;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::Change;
use forebay_client::Collection;
use forebay_client::wire::{FrameKind, Part, Projection, TypeMeta};
use forebay_golden::{API, EXTENSIONS};
use forebay_schema::builtin::protobuf::{Envelope, ListForm, decode_envelope, open_watch_frame};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::change::Of;
use crate::encoding::{Came, Encoding, Frames, Items, Spoken};
use crate::transcode::Transcoder;

struct Golden {
    name: String,
    of: TypeMeta,
    json: String,
    message: Vec<u8>,
}

fn goldens() -> Option<Vec<Golden>> {
    let found = forebay_golden::goldens(&[API, EXTENSIONS])?;
    Some(found.into_iter().map(of_envelope).collect())
}

fn of_envelope(golden: forebay_golden::Golden) -> Golden {
    let forebay_golden::Golden { name, json, protobuf } = golden;
    let unknown = decode_envelope(&protobuf).expect(&name);
    let of = TypeMeta { kind: unknown.kind.into_owned(), api_version: unknown.api_version.into_owned() };
    Golden { of, json, message: unknown.raw.to_vec(), name }
}

/// What is kept of a kind's objects that come as `protobuf` or as JSON.
fn spoken(of: &TypeMeta, protobuf: bool) -> Option<Spoken> {
    let (group, version) = split_api_version(&of.api_version);
    let protobuf = if protobuf { Some(Transcoder::of_kind(group, version, &of.kind)?) } else { None };
    Some(Spoken::of(protobuf))
}

fn revision() -> Revision {
    Revision::new(7).expect("not 0")
}

/// What becomes of the only object of a stream.
fn of_frame(spoken: &mut Spoken, mut frames: Frames, body: &[u8], cut: &Projection) -> Option<Change> {
    frames.push(body);
    let frame = frames.next_frame().expect("a frame")?;
    assert_eq!((frame.kind, frames.is_within_frame()), (FrameKind::Modified, false));
    spoken.change(frame.object, revision(), &TypeMeta::default(), cut, Of::Whole)
}

/// What becomes of the only item of a list.
fn of_item(spoken: &mut Spoken, mut items: Items, body: &[u8], cut: &Projection) -> Option<Change> {
    items.push(body);
    let Some(Part::Head(head)) = items.next_part().expect("a head") else { panic!("a head comes first") };
    let kind = head.kind.strip_suffix("List").expect("a list").to_owned();
    let of = TypeMeta { kind, api_version: head.api_version };
    let Some(Part::Item(item)) = items.next_part().expect("an item") else { panic!("an item comes next") };
    assert!(matches!(items.next_part(), Ok(Some(Part::End(_)))));
    spoken.change(item, revision(), &of, cut, Of::Whole)
}

/// The object as the only one of a watch and of a list: in JSON, and in protobuf.
fn bodies(Golden { of, json, message, .. }: &Golden) -> [Vec<u8>; 4] {
    let TypeMeta { kind, api_version } = of;
    let frame = format!("{{\"type\":\"MODIFIED\",\"object\":{json}}}\n");
    // Items do not say their type, which golden files do in their first lines.
    let item: Vec<&str> = json.lines().filter(|line| !is_type(line)).collect();
    let item = item.join("\n");
    let list = format!(
        r#"{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":{{"resourceVersion":"9"}},"items":[{item}]}}"#
    );
    let (mut enveloped, mut event, mut items, mut body) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Envelope::new(api_version, kind).write(message, &mut enveloped);
    open_watch_frame("MODIFIED", enveloped.len(), &mut event);
    event.extend_from_slice(&enveloped);
    items.extend_from_slice(&ListForm::MetadataFirst.metadata_field(b"\x12\x019"));
    ListForm::MetadataFirst.open_item(message.len(), &mut items);
    items.extend_from_slice(message);
    Envelope::new(api_version, &format!("{kind}List")).write(&items, &mut body);
    [frame.into_bytes(), list.into_bytes(), event, body]
}

fn is_type(line: &str) -> bool {
    line.starts_with("  \"kind\":") || line.starts_with("  \"apiVersion\":")
}

/// What is kept of it by each way, as text.
fn kept(golden: &Golden, cut: &Projection) -> [Option<(Key, String)>; 4] {
    let [frame, list, event, body] = bodies(golden);
    let text = |change: Change| {
        let value = change.value.expect("it is there").to_vec();
        (change.key, String::from_utf8(value).expect("JSON"))
    };
    let spoken = |protobuf| spoken(&golden.of, protobuf);
    [
        spoken(false).and_then(|mut it| of_frame(&mut it, Frames::new(false), &frame, cut)).map(text),
        spoken(true).and_then(|mut it| of_frame(&mut it, Frames::new(true), &event, cut)).map(text),
        spoken(false).and_then(|mut it| of_item(&mut it, Items::new(false), &list, cut)).map(text),
        spoken(true).and_then(|mut it| of_item(&mut it, Items::new(true), &body, cut)).map(text),
    ]
}

#[test]
fn every_golden_object_is_kept_the_same_from_json_and_from_protobuf() {
    let Some(goldens) = goldens() else { return };
    let path = |text: &str| text.parse::<FieldPath>().expect("a path");
    let lean =
        Projection::new(&[path("metadata.managedFields"), path("status")], None).expect("a projection");
    let mut left = Vec::new();
    let mut same = 0;
    for golden in &goldens {
        // Some kinds are never an object by themselves.
        let tree: Value = serde_json::from_str(&golden.json).expect("JSON");
        if !tree["metadata"]["name"].is_string() {
            continue;
        }
        for cut in [&Projection::default(), &lean] {
            let [frame, event, item, message] = kept(golden, cut);
            if event.is_none() {
                left.push(golden.name.as_str());
                assert_eq!(message, None);
                continue;
            }
            assert_eq!(event, frame, "{}", golden.name);
            assert_eq!(message, item, "{}", golden.name);
            assert_ne!(event, message, "{}: in another order", golden.name);
            same += 1;
        }
    }
    left.dedup();
    assert_eq!(left, [""; 0], "what is left to JSON");
    assert!(same > 2 * 150, "{same}");
}

#[test]
fn what_cannot_be_kept_whole_is_asked_for_as_json() {
    let pods = Collection::all("", "v1", "pods");
    let protobuf: HeaderMap =
        [(CONTENT_TYPE, "application/vnd.kubernetes.protobuf;stream=watch".parse().expect("a value"))]
            .into_iter()
            .collect();
    let json = [(CONTENT_TYPE, "application/json".parse().expect("a value"))].into_iter().collect();
    let asked = || Spoken::new(Encoding::Protobuf, &pods);
    let asks_protobuf = |spoken: &Spoken| spoken.headers().any(|(_, value)| value.contains("protobuf"));
    let list = |kind: &str, message: &[u8]| {
        let (mut items, mut body) = (ListForm::MetadataFirst.metadata_field(b"\x12\x019"), Vec::new());
        ListForm::MetadataFirst.open_item(message.len(), &mut items);
        items.extend_from_slice(message);
        Envelope::new("v1", kind).write(&items, &mut body);
        body
    };
    let whole = Projection::default();
    // A pod of a name; one with a 99th field, one that is cut short in its spec, and another kind.
    let rows: [(&str, &[u8], bool); 4] = [
        ("PodList", b"\x0a\x03\x0a\x01a", true),
        ("PodList", b"\x0a\x03\x0a\x01a\x9a\x06\x01x", false),
        ("PodList", b"\x0a\x03\x0a\x01a\x12\x02\x0a\x05", false),
        ("NodeList", b"\x0a\x03\x0a\x01a", false),
    ];
    for (kind, message, is_kept) in rows {
        let mut spoken = asked();
        assert!(asks_protobuf(&spoken) && spoken.came(&protobuf) == Came::Protobuf);
        let change = of_item(&mut spoken, Items::new(true), &list(kind, message), &whole);
        assert_eq!((change.is_some(), asks_protobuf(&spoken)), (is_kept, is_kept), "{kind} {message:?}");
    }
    let mut spoken = asked();
    assert!(!spoken.is_refused(404) && asks_protobuf(&spoken));
    assert!(spoken.is_refused(406) && !asks_protobuf(&spoken));
    assert!(!spoken.is_refused(406), "it is told of, once JSON is refused as well");
    let mut spoken = asked();
    assert_eq!((spoken.came(&protobuf), asks_protobuf(&spoken)), (Came::Protobuf, true));
    assert_eq!(
        (spoken.came(&json), asks_protobuf(&spoken)),
        (Came::Json, false),
        "once JSON came it stays so"
    );
    // A kind that this program does not know, which may be a newer server's.
    let mut spoken = Spoken::new(Encoding::Auto, &Collection::all("example.com", "v1", "things"));
    assert_eq!((spoken.came(&protobuf), asks_protobuf(&spoken)), (Came::Unknown, false));
    assert_eq!(spoken.came(&protobuf), Came::Json, "nothing is asked for a third time");
}

#[test]
fn who_leaves_it_to_the_server_says_so() {
    let pods = Collection::all("", "v1", "pods");
    let headers = |encoding| -> Vec<String> {
        let spoken = Spoken::new(encoding, &pods);
        spoken.headers().map(|(name, value)| format!("{name}: {value}")).collect()
    };
    let both = "accept: application/vnd.kubernetes.protobuf, application/json";
    assert_eq!(headers(Encoding::Auto), [both, "prefer: stored-form"]);
    assert_eq!(headers(Encoding::Protobuf), [both]);
    assert_eq!(headers(Encoding::Json), ["accept: application/json"]);
}
