//! Every cutter of bodies withstands any input, cuts pieces as the whole, and finds what serde_json does.

use std::ops::Range;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};
use forebay_apimachinery::Lease;
use forebay_apimachinery::{Key, Revision};
use forebay_client::wire::{
    DelimitedFrames, Frame, FrameKind, Inflate, LAST_APPLIED, ListItems, ListMeta, MANAGED_FIELDS,
    MessageFrames, MessageItems, NextRun, ObjectMessage, ObjectText, Part, Projection, Runs, StatusFrame,
    TypeMeta, WatchFrames, WireError,
};
use forebay_fuzz::{Corpus, gist, run};
use forebay_object::{Form, Interner, Layout, Object, Scope};
use forebay_schema::builtin::protobuf::{Envelope, ListForm, decode, encode_json, open_watch_frame};
use forebay_schema::builtin::{TypeId, table};
use serde_json::{Deserializer, Value};

const WORDS: &[&str] = &[
    "{}",
    "[]",
    "null",
    "\"",
    "\\\"",
    "\\\\",
    " ",
    "\n",
    "1e5",
    ",",
    ":",
    "\"a\":",
    "\"type\":",
    "\"ADDED\"",
    "\"BOOKMARK\"",
    "\"ERROR\"",
    "\"object\":",
    "\"items\":",
    "\"metadata\":",
    "\"metadata\":{},",
    "\"resourceVersion\":\"7\"",
    "\"name\":\"a\",",
    "\"\\u006eame\":",
    "\"kind\":\"Pod\",",
    "\"kind\":\"Status\"",
    "\"apiVersion\":\"v1\",",
    "\"continue\":\"x\",",
    "\"remainingItemCount\":",
    "k8s.io/initial-events-end",
    "\\ud800",
    "é",
    "{\"a\":1,\"a\":2}",
];

/// The input in pieces, cut at places that it decides itself.
fn pieces(input: &[u8]) -> Vec<&[u8]> {
    let mut state = input.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let longest = [1, 3, 16, 200][(state % 4) as usize];
    let mut rest = input;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (piece, behind) = rest.split_at((1 + (state >> 33) as usize % longest).min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

/// Whether an object of a JSON text that yields `values` has two members of one name: trees do not show it.
fn has_duplicates<'v>(input: &[u8], values: impl IntoIterator<Item = &'v Value>) -> bool {
    let (mut colons, mut in_string, mut escaped) = (0, false, false);
    for byte in input {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b':' if !in_string => colons += 1,
            _ => {}
        }
    }
    let mut members = 0;
    let mut left: Vec<&Value> = values.into_iter().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::Object(object) => {
                members += object.len();
                left.extend(object.values());
            }
            Value::Array(array) => left.extend(array),
            _ => {}
        }
    }
    members != colons
}

fn is_text_or_none(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.is_null() || value.is_string())
}

fn has_texts(value: Option<&Value>, names: &[&str]) -> bool {
    let members = |value: &Value| names.iter().all(|name| is_text_or_none(value.get(name)));
    value.is_none_or(|value| value.is_null() || value.is_object() && members(value))
}

/// Whether everything that names an object is of the right type.
fn is_object(value: &Value) -> bool {
    let metadata = &["name", "namespace", "uid", "resourceVersion"];
    value.is_object()
        && has_texts(Some(value), &["kind", "apiVersion"])
        && has_texts(value.get("metadata"), metadata)
}

fn text<'v>(value: &'v Value, names: &[&str]) -> &'v str {
    names.iter().try_fold(value, |value, name| value.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a cache would have such an object: it has a name, and labels are texts.
fn is_stored(object: &Value) -> bool {
    let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
    let are_texts =
        |labels: &Value| labels.as_object().is_none_or(|labels| labels.values().all(Value::is_string));
    object["metadata"]["name"].is_string() && labels.is_none_or(are_texts)
}

/// What was found of an object is what a tree of it has, and so is what becomes of it.
fn check_object(object: &ObjectText, want: &Value) {
    let read: Value = serde_json::from_slice(object.bytes()).expect("it was read as a part");
    assert_eq!(&read, want);
    assert_eq!(object.name(), text(want, &["metadata", "name"]));
    assert_eq!(object.namespace(), text(want, &["metadata", "namespace"]));
    assert_eq!(object.uid(), text(want, &["metadata", "uid"]));
    assert_eq!(object.resource_version(), text(want, &["metadata", "resourceVersion"]));
    assert_eq!(object.kind(), text(want, &["kind"]));
    assert_eq!(object.api_version(), text(want, &["apiVersion"]));
    let mark = text(want, &["metadata", "annotations", "k8s.io/initial-events-end"]);
    assert_eq!(object.ends_initial_events(), mark == "true");
    if let Some(marks) = object.marks() {
        let text_at = |place: Range<u32>| &object.bytes()[place.start as usize..place.end as usize];
        let value_at = |place| serde_json::from_slice::<Value>(text_at(place)).ok();
        assert_eq!(value_at(marks.metadata).as_ref(), want.get("metadata"));
        let labels = want["metadata"].get("labels").filter(|labels| labels.is_object());
        assert_eq!(value_at(marks.labels).as_ref(), labels);
        let quoted = |place| [b"\"", text_at(place), b"\""].concat();
        let said = |place| serde_json::from_slice::<Value>(&quoted(place)).ok();
        assert_eq!(said(marks.revision).as_ref(), want["metadata"].get("resourceVersion"));
        assert_eq!(said(marks.api_version).as_ref(), want.get("apiVersion"));
    }
    let of = TypeMeta { kind: "A\"".into(), api_version: "g/v1".into() };
    let mut stored = want.clone();
    if let Some(metadata) = stored.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    if !(stored["kind"].is_string() && stored["apiVersion"].is_string()) {
        stored["kind"] = of.kind.clone().into();
        stored["apiVersion"] = of.api_version.clone().into();
    }
    for form in [Form::Typed, Form::Whole] {
        let value = object.clone().into_value(form, &of);
        let again: Value = serde_json::from_slice(&value).expect("it stays JSON");
        assert_eq!(again, stored, "{}", value.escape_ascii());
        if is_stored(&stored) {
            let layout =
                Layout { prefix_len: "/registry/a/".len(), scope: Scope::Cluster, form, fields: vec![] };
            let key = Key::new("/registry/a/a");
            let decoded = Object::decode(&layout, key, Revision::FIRST, &value, &mut Interner::default());
            assert!(decoded.is_ok(), "{decoded:?}: {}", value.escape_ascii());
        }
    }
}

type Frames = (Vec<(FrameKind, ObjectText)>, Result<bool, WireError>);

fn frames_of<'i>(pieces: impl IntoIterator<Item = &'i [u8]>) -> Frames {
    let mut cutter = WatchFrames::new();
    let mut frames = Vec::new();
    for piece in pieces {
        cutter.push(piece);
        loop {
            match cutter.next_frame() {
                Ok(Some(frame)) => frames.push((frame.kind, frame.object)),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(cutter.is_within_frame()))
}

fn is_event(value: &Value) -> bool {
    let kinds = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"];
    value.is_object() && kinds.contains(&text(value, &["type"])) && value.get("object").is_some_and(is_object)
}

#[test]
fn fuzz_watch_frames() {
    let inputs: &[&[u8]] = &[
        br#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"c","resourceVersion":"5"},"spec":{"x":[1,{"y":"}\""}]}}}"#,
        b"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n{\"object\":{},\"type\":\"DELETED\"}\n",
        br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","details":{"retryAfterSeconds":1,"causes":[{"reason":"x"}]}}}"#,
        br#" { "z" : [ ] , "object" : { "metadata" : { "\u006eame" : "\u00e9" } } , "type" : "MODIFIED" } "#,
    ];
    run("watch frames", &Corpus { inputs, words: WORDS, ..Corpus::default() }, |input| {
        let (frames, end) = frames_of([input]);
        assert_eq!(frames_of(pieces(input)), (frames.clone(), end), "it depends on where it is cut");
        match WatchFrames::new().frames_of(&Bytes::copy_from_slice(input)) {
            Ok(Some(whole)) => {
                for (frame, place) in &whole {
                    assert_eq!(frame.object.bytes(), &input[place.clone()]);
                }
                let whole = whole.into_iter().map(|(frame, _)| (frame.kind, frame.object)).collect();
                assert_eq!((whole, Ok(false)), (frames.clone(), end));
            }
            Ok(None) => assert_eq!(end, Ok(true)),
            Err(error) => assert_eq!(end, Err(error)),
        }
        let theirs: Result<Vec<Value>, _> = Deserializer::from_slice(input).into_iter().collect();
        if let Ok(theirs) = theirs
            && theirs.iter().all(is_event)
            && !has_duplicates(input, &theirs)
        {
            assert_eq!((end, frames.len()), (Ok(false), theirs.len()));
            for ((kind, object), want) in frames.iter().zip(&theirs) {
                check_object(object, &want["object"]);
                let said = match kind {
                    FrameKind::Added => "ADDED",
                    FrameKind::Modified => "MODIFIED",
                    FrameKind::Deleted => "DELETED",
                    FrameKind::Bookmark { .. } => "BOOKMARK",
                    FrameKind::Error(_) => "ERROR",
                };
                assert_eq!(said, text(want, &["type"]));
            }
        }
        (frames.len(), end.map_err(gist))
    });
}

type Parts = (Vec<Part>, Result<bool, WireError>);

fn parts_of<'i>(pieces: impl IntoIterator<Item = &'i [u8]>) -> Parts {
    let mut cutter = ListItems::new();
    let mut parts = Vec::new();
    for piece in pieces {
        cutter.push(piece);
        loop {
            match cutter.next_part() {
                Ok(Some(part)) => parts.push(part),
                Ok(None) => break,
                Err(error) => return (parts, Err(error)),
            }
        }
    }
    (parts, Ok(cutter.is_whole()))
}

/// What the parts are but for the head, which depends on where the pieces end.
fn behind_head((mut parts, end): Parts) -> Parts {
    let heads = parts.iter().filter(|part| matches!(part, Part::Head(_))).count();
    assert!(heads <= 1 && parts.iter().skip(heads).all(|part| !matches!(part, Part::Head(_))));
    parts.drain(..heads);
    (parts, end)
}

fn is_list(value: &Value) -> bool {
    let items = value.get("items").is_some_and(|items| {
        items.is_null() || items.as_array().is_some_and(|items| items.iter().all(is_object))
    });
    let texts = has_texts(Some(value), &["kind", "apiVersion"]);
    items && texts && has_texts(value.get("metadata"), &["resourceVersion", "continue"])
}

fn check_list(parts: &[Part], want: &Value) {
    let Some((Part::End(meta), items)) = parts.split_last() else { panic!("a list ends") };
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let meta_want = ListMeta {
        kind: text(want, &["kind"]).into(),
        api_version: text(want, &["apiVersion"]).into(),
        revision: some(text(want, &["metadata", "resourceVersion"])),
        next: some(text(want, &["metadata", "continue"])),
        remaining: want.get("metadata").and_then(|metadata| metadata.get("remainingItemCount")?.as_u64()),
    };
    assert_eq!(meta, &meta_want);
    let items_want: &[Value] = want["items"].as_array().map_or(&[], Vec::as_slice);
    assert_eq!(items.len(), items_want.len());
    for (item, want) in items.iter().zip(items_want) {
        let Part::Item(object) = item else { panic!("{item:?}") };
        check_object(object, want);
    }
}

#[test]
fn fuzz_list_items() {
    let inputs: &[&[u8]] = &[
        br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42","continue":"e30=","remainingItemCount":3},"items":[{"metadata":{"name":"a","resourceVersion":"1"},"spec":{}},{"metadata":{"name":"b"}}]}"#,
        br#"{"items":[{"apiVersion":"g/v1","kind":"Foo","metadata":{"name":"a","annotations":{"x":"]}"}}}],"metadata":{"resourceVersion":"1"}}"#,
        br#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"x"},"code":410,"reason":"Expired","message":"m"}"#,
        b"{\"metadata\":null,\"items\":null}\n",
        br#" { "items" : [ { } , { "metadata" : { } } ] , "kind" : "List" } "#,
    ];
    run("list items", &Corpus { inputs, words: WORDS, ..Corpus::default() }, |input| {
        let (parts, end) = behind_head(parts_of([input]));
        let cut = behind_head(parts_of(pieces(input)));
        assert_eq!(cut, (parts.clone(), end), "it depends on where it is cut");
        if let Ok(theirs) = serde_json::from_slice::<Value>(input)
            && !has_duplicates(input, [&theirs])
            && is_list(&theirs)
            && text(&theirs, &["kind"]) != "Status"
        {
            assert_eq!(end, Ok(true));
            check_list(&parts, &theirs);
        }
        if let [Part::Status(status)] = &parts[..] {
            assert!(end.is_err() || StatusFrame::read(input).as_ref() == Ok(status));
        }
        (parts.len(), end.map_err(gist))
    });
}

fn delimited_of<'i>(pieces: impl IntoIterator<Item = &'i [u8]>) -> (Vec<Vec<u8>>, Result<bool, WireError>) {
    let mut cutter = DelimitedFrames::new();
    let mut frames = Vec::new();
    for piece in pieces {
        cutter.push(piece);
        loop {
            match cutter.next_frame() {
                Ok(Some(frame)) => frames.push(frame.to_vec()),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(cutter.is_within_frame()))
}

/// What a body in gzip says, and whether that is all of it: by itself, or first in runs as long as it is made
/// of them.
fn inflated<'i>(
    pieces: impl IntoIterator<Item = &'i [u8]>,
    by: Option<Runs>,
) -> Result<(Vec<u8>, bool), WireError> {
    let (mut plain, mut runs) = (Vec::new(), by);
    let mut rest = if runs.is_some() { None } else { Some(Inflate::new()) };
    for piece in pieces.into_iter().map(Some).chain([None]) {
        match (&mut runs, &mut rest, piece) {
            (Some(runs), _, Some(piece)) => runs.push(piece),
            (None, Some(rest), Some(piece)) => rest.push(piece),
            _ => {}
        }
        while let Some(some) = &mut runs {
            match some.next_run() {
                NextRun::Run(run) => plain.extend_from_slice(&run.plain),
                NextRun::More if piece.is_some() => break,
                NextRun::More | NextRun::Otherwise => rest = runs.take().map(Runs::go_on),
            }
        }
        while let Some(more) = rest.as_mut().map_or(Ok(None), Inflate::next_piece)? {
            plain.extend_from_slice(more);
        }
    }
    Ok((plain, rest.is_some_and(|rest| rest.is_whole())))
}

/// A member of texts that were flushed so.
fn member(texts: &[&[u8]], flush: FlushCompress) -> Vec<u8> {
    let (mut out, mut sum) = (vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255], Crc::new());
    let mut coder = Compress::new(Compression::fast(), false);
    for text in texts {
        let mut room = Vec::with_capacity(text.len() + 1_000);
        coder.compress_vec(text, &mut room, flush).expect("there is room");
        out.extend(room);
        sum.update(text);
    }
    out.extend([3, 0]);
    out.extend([sum.sum().to_le_bytes(), sum.amount().to_le_bytes()].concat());
    out
}

#[test]
fn fuzz_runs() {
    let texts: [&[u8]; 3] = [b"{\"type\":\"ADDED\"}\n{\"type\":\"ADDED\"}\n", b"", b"{\"type\":\"ADDED\"}\n"];
    let (full, sync) = (member(&texts, FlushCompress::Full), member(&texts, FlushCompress::Sync));
    let two = [&full[..], &sync].concat();
    let mut wrong = [&full[..], &full].concat();
    wrong[full.len() - 5] ^= 1;
    let inputs: &[&[u8]] = &[&full, &sync, &two, &wrong];
    run("runs of deflate", &Corpus { inputs, words: &["\0", "\u{3}\0"], ..Corpus::default() }, |input| {
        let alone = inflated([input], None);
        for by in [inflated([input], Some(Runs::new(7))), inflated(pieces(input), Some(Runs::new(7)))] {
            // Of what is garbled it may be seen later, but it is never taken for whole.
            match &alone {
                Ok(_) => assert_eq!(by, alone),
                Err(_) => assert!(!matches!(by, Ok((_, true)))),
            }
        }
        alone.map(|(plain, is_whole)| (plain.len(), is_whole)).map_err(gist)
    });
}

#[test]
fn fuzz_delimited_frames() {
    let inputs: &[&[u8]] =
        &[b"\0\0\0\x03abc\0\0\0\0\0\0\0\x01x", b"\0\0\x01\0", b"\xff\xff\xff\xff", b"\x01\0\0\0"];
    let words = &["\0\0\0\0", "\0\0\0\x01", "\0", "k8s\0", "\x01\0\0\0"];
    run("delimited frames", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let (frames, end) = delimited_of([input]);
        assert_eq!(delimited_of(pieces(input)), (frames.clone(), end));
        // Frames and what is left say the input again.
        let mut said = Vec::new();
        for frame in &frames {
            said.extend_from_slice(&(frame.len() as u32).to_be_bytes());
            said.extend_from_slice(frame);
        }
        let rest = input.strip_prefix(&said[..]).expect("in their order");
        assert_eq!(end.unwrap_or(true), !rest.is_empty());
        (frames.len(), end.map_err(gist), rest.len().min(8))
    });
}

#[test]
fn fuzz_projections() {
    let inputs: &[&[u8]] = &[
        br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},"managedFields":[{}]},"spec":{"a":[{"b":1},{"c":[[]]}]}}"#,
        br#"{"metadata":{"resourceVersion":"7","labels":{"a":"b"},"name":"a"},"spec":{"a":[],"a":{"b":2}},"a":{"b":{"c":null}}}"#,
    ];
    let path = |text: &str| text.parse().expect("a path");
    let drops = [path(MANAGED_FIELDS), path(LAST_APPLIED), path("spec.a[*].b"), path("a.b")];
    let keeps = [path("metadata.labels"), path("spec.a[*]"), path("a.b.c")];
    let projections = [
        Projection::metadata_only(),
        Projection::new(&drops, None).expect("a projection"),
        Projection::new(&drops, Some(&keeps)).expect("a projection"),
        Projection::new(&[path("metadata"), path("spec")], None).expect("a projection"),
    ];
    let of = TypeMeta { kind: "Pod".into(), api_version: "v1".into() };
    run("projections", &Corpus { inputs, words: WORDS, ..Corpus::default() }, |input| {
        // Anything may be asked for a part.
        let raw = projections.each_ref().map(|it| it.apply(input).map(|part| part.len()).map_err(gist));
        let Ok(object) = ObjectText::read(input) else { return (raw, vec![]) };
        let parts = [Form::Typed, Form::Whole].iter().flat_map(|form| {
            let value = object.clone().into_value(*form, &of);
            projections.each_ref().map(|it| part_of(it, *form, &value))
        });
        (raw, parts.collect())
    });
}

/// The length of what stays, if anything; it stays when asked for again, and decodes if the value did.
fn part_of(projection: &Projection, form: Form, value: &[u8]) -> Option<usize> {
    let part = projection.apply(value);
    let is_json = serde_json::from_slice::<Value>(value).is_ok();
    assert!(part.is_ok() || !is_json, "it was JSON");
    let part = part.ok()?;
    assert!(part.len() <= value.len());
    assert_eq!(projection.apply(&part).as_ref(), Ok(&part));
    if is_json {
        let tree: Value = serde_json::from_slice(value).expect("it was");
        let left: Value = serde_json::from_slice(&part).expect("it is still");
        for name in ["name", "namespace", "uid"] {
            assert_eq!(tree["metadata"][name], left["metadata"][name]);
        }
        if tree["metadata"]["name"].is_string() && decodes(form, value) {
            assert!(decodes(form, &part), "{}", String::from_utf8_lossy(&part));
        }
    }
    Some(part.len())
}

fn decodes(form: Form, value: &[u8]) -> bool {
    let layout = Layout { prefix_len: 1, scope: Scope::Cluster, form, fields: vec![] };
    Object::decode(&layout, Key::new("/a"), Revision::from_log(7), value, &mut Interner::default()).is_ok()
}

const MESSAGE_WORDS: &[&str] = &[
    "k8s\0",
    "\n\0",
    "\u{12}\0",
    "\u{12}\u{2}\n\0",
    "\u{1a}\0\"\0",
    "\u{8}\u{1}",
    "\n\u{5}ADDED",
    "\u{b}",
    "\u{c}",
    "\u{7f}",
];

type MessageParts = (Vec<Part<ObjectMessage>>, Result<bool, WireError>);

fn message_parts_of<'i>(pieces: impl IntoIterator<Item = &'i [u8]>) -> MessageParts {
    let mut cutter = MessageItems::new();
    let mut parts = Vec::new();
    for piece in pieces {
        cutter.push(piece);
        loop {
            match cutter.next_part() {
                Ok(Some(part)) => parts.push(part),
                Ok(None) => break,
                Err(error) => return (parts, Err(error)),
            }
        }
    }
    (parts, Ok(cutter.is_whole()))
}

type MessageFramesOf = (Vec<Frame<ObjectMessage>>, Result<bool, WireError>);

fn message_frames_of<'i>(pieces: impl IntoIterator<Item = &'i [u8]>) -> MessageFramesOf {
    let mut cutter = MessageFrames::new();
    let mut frames = Vec::new();
    for piece in pieces {
        cutter.push(piece);
        loop {
            match cutter.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(cutter.is_within_frame()))
}

fn message(kind: &str, json: &str) -> Vec<u8> {
    let kind = table().kind("", "v1", kind).expect("a kind");
    let mut out = Vec::new();
    encode_json(kind.ty, json.as_bytes(), &mut out).expect("canonical");
    out
}

fn enveloped(kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Envelope::new("v1", kind).write(message, &mut out);
    out
}

const MAP: &str = r#"{"metadata":{"name":"a","namespace":"b","uid":"c","resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}},"data":{"k":"v"}}"#;
const STATUS: &str = r#"{"metadata":{"continue":"x"},"status":"Failure","message":"m","reason":"Expired","details":{"causes":[{"reason":"x","message":"y","field":"z"}],"retryAfterSeconds":1},"code":410}"#;

/// What an object is called is what the schema's decoder finds, if that can read it. Whether it can.
fn check_message(object: &ObjectMessage, reader: TypeId) -> bool {
    let Ok(value) = decode(reader, object.message(), &Lease::of_one_tree()) else { return false };
    assert_eq!(object.name(), text(&value, &["metadata", "name"]));
    assert_eq!(object.namespace(), text(&value, &["metadata", "namespace"]));
    assert_eq!(object.resource_version(), text(&value, &["metadata", "resourceVersion"]));
    true
}

#[test]
fn fuzz_message_lists() {
    let map = message("ConfigMap", MAP);
    let mut list = b"\n\x09\x12\x0242\x1a\x01x \x07".to_vec();
    list[1] = (list.len() - 2) as u8;
    for item in [&map, &Vec::new()] {
        ListForm::MetadataFirst.open_item(item.len(), &mut list);
        list.extend_from_slice(item);
    }
    let (list, status) = (enveloped("ConfigMapList", &list), enveloped("Status", &message("Status", STATUS)));
    let inputs: &[&[u8]] = &[&list, &status, b"k8s\0\n\x06\x12\x04List\x12\0"];
    let reader = table().kind("", "v1", "ConfigMap").expect("a kind").ty;
    run("message lists", &Corpus { inputs, words: MESSAGE_WORDS, ..Corpus::default() }, |input| {
        let (parts, end) = message_parts_of([input]);
        assert_eq!(message_parts_of(pieces(input)), (parts.clone(), end), "it depends on where it is cut");
        let heads = parts.iter().filter(|part| matches!(part, Part::Head(_))).count();
        assert!(heads <= 1 && parts.iter().skip(heads).all(|part| !matches!(part, Part::Head(_))));
        let items = parts.iter().filter_map(|part| match part {
            Part::Item(object) => Some(check_message(object, reader)),
            _ => None,
        });
        let decoded = items.filter(|decodes| *decodes).count();
        if let ([Part::Status(status)], Ok(read)) = (&parts[..], StatusFrame::read(input)) {
            assert_eq!(&read, status);
        }
        (parts.len(), decoded.min(8), end.map_err(gist))
    });
}

#[test]
fn fuzz_message_frames() {
    let framed = |kind: &str, of: &str, json: &str| {
        let object = enveloped(of, &message(of, json));
        let mut out = Vec::new();
        open_watch_frame(kind, object.len(), &mut out);
        out.extend_from_slice(&object);
        out
    };
    let (added, bookmark) = (framed("ADDED", "ConfigMap", MAP), framed("BOOKMARK", "ConfigMap", MAP));
    let (deleted, error) = (framed("DELETED", "ConfigMap", MAP), framed("ERROR", "Status", STATUS));
    let two = [&deleted[..], &error].concat();
    let inputs: &[&[u8]] = &[&added, &bookmark, &two, b"\0\0\0\x01x"];
    let reader = table().kind("", "v1", "ConfigMap").expect("a kind").ty;
    run("message frames", &Corpus { inputs, words: MESSAGE_WORDS, ..Corpus::default() }, |input| {
        let (frames, end) = message_frames_of([input]);
        assert_eq!(message_frames_of(pieces(input)), (frames.clone(), end), "it depends on where it is cut");
        // The frames are among those that their lengths say, in their order.
        let (delimited, _) = delimited_of([input]);
        assert!(frames.len() <= delimited.len());
        let decoded = frames.iter().filter(|frame| check_message(&frame.object, reader)).count();
        (frames.len(), decoded.min(8), end.map_err(gist))
    });
}
