//! Bodies in protobuf, as the server's own code writes them: cut anywhere, cut short, and wrong.

use forebay_schema::builtin::protobuf::{Envelope, ListForm, encode, open_watch_frame};
use forebay_schema::builtin::table;
use serde_json::{Value, json};

use super::super::{Frame, FrameKind, Part, StatusFrame, WireError};
use super::*;
use crate::limits::OBJECT_BYTES_MAX;

fn message(kind: &str, object: &Value) -> Vec<u8> {
    let kind = table().kind("", "v1", kind).expect("a kind");
    let mut out = Vec::new();
    encode(kind.ty, object, &mut out).expect("canonical");
    out
}

fn map(name: &str, revision: u64) -> Value {
    json!({"metadata": {"name": name, "namespace": "here", "resourceVersion": revision.to_string()}, "data": {"a": "b"}})
}

fn enveloped(kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Envelope::new("v1", kind).write(message, &mut out);
    out
}

/// A list of `items`, each with its length before it.
fn list(metadata: &Value, items: &[Vec<u8>]) -> Vec<u8> {
    let ty = table().type_named("meta/v1", "ListMeta");
    let mut meta = Vec::new();
    match ty {
        Some(ty) => encode(ty, metadata, &mut meta).expect("canonical"),
        None => panic!("a list has metadata"),
    }
    let mut list = ListForm::MetadataFirst.metadata_field(&meta);
    for item in items {
        ListForm::MetadataFirst.open_item(item.len(), &mut list);
        list.extend_from_slice(item);
    }
    enveloped("ConfigMapList", &list)
}

fn two_maps() -> Vec<u8> {
    let meta = json!({"resourceVersion": "42", "continue": "e30=", "remainingItemCount": 7});
    list(&meta, &[message("ConfigMap", &map("one", 7)), message("ConfigMap", &map("two", 8))])
}

fn event(kind: &str, of: &str, object: &Value) -> Vec<u8> {
    let object = enveloped(of, &message(of, object));
    let mut out = Vec::new();
    open_watch_frame(kind, object.len(), &mut out);
    out.extend_from_slice(&object);
    out
}

/// What a list is cut into, in short.
fn parts(pieces: &[&[u8]]) -> (Vec<String>, Result<bool, WireError>) {
    let mut items = MessageItems::new();
    let mut told = Vec::new();
    for piece in pieces {
        items.push(piece);
        loop {
            match items.next_part() {
                Ok(Some(part)) => told.push(match part {
                    Part::Head(meta) => format!("head {} {}", meta.kind, meta.revision.unwrap_or_default()),
                    Part::Item(item) => format!("{} {}", item.name(), item.resource_version()),
                    Part::End(meta) => format!(
                        "end {} {} {:?}",
                        meta.revision.unwrap_or_default(),
                        meta.next.unwrap_or_default(),
                        meta.remaining
                    ),
                    Part::Status(status) => format!("{} {}", status.code, status.reason),
                }),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(items.next_part(), Err(error), "it stays so");
                    return (told, Err(error));
                }
            }
        }
    }
    (told, Ok(items.is_whole()))
}

/// What a stream is cut into, in short.
fn frames(pieces: &[&[u8]]) -> (Vec<String>, Result<bool, WireError>) {
    let mut frames = MessageFrames::new();
    let mut told = Vec::new();
    for piece in pieces {
        frames.push(piece);
        loop {
            match frames.next_frame() {
                Ok(Some(Frame { kind: FrameKind::Error(status), .. })) => {
                    told.push(format!("{} {} {:?}", status.code, status.reason, status.causes));
                }
                Ok(Some(Frame { kind, object })) => {
                    let of = object.type_meta().map_or("", |of| &of.kind);
                    told.push(format!("{kind:?} {of} {}/{}", object.namespace(), object.name()));
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(frames.next_frame(), Err(error), "it stays so");
                    return (told, Err(error));
                }
            }
        }
    }
    (told, Ok(frames.is_within_frame()))
}

#[test]
fn a_list_is_cut_into_the_same_parts_wherever_its_pieces_end() {
    let body = two_maps();
    let want = ["head ConfigMapList 42", "one 7", "two 8", "end 42 e30= Some(7)"].map(str::to_owned);
    for cut in 0..=body.len() {
        let (told, is_whole) = parts(&[&body[..cut], &body[cut..]]);
        assert_eq!((told.as_slice(), is_whole), (&want[..], Ok(true)), "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(parts(&bytes).0, want);
    assert_eq!(
        parts(&[&list(&json!({"resourceVersion": "3"}), &[])]).0,
        ["head ConfigMapList 3", "end 3  None"]
    );
}

#[test]
fn a_list_that_is_cut_short_is_not_whole() {
    let body = two_maps();
    // Behind the list its envelope has two empty fields, which nobody needs.
    for cut in 0..body.len() - 4 {
        let (told, is_whole) = parts(&[&body[..cut]]);
        assert_eq!((is_whole, told.iter().any(|part| part.starts_with("end"))), (Ok(false), false), "{cut}");
    }
    assert_eq!(parts(&[&body[..body.len() - 4]]).1, Ok(true));
}

#[test]
fn frames_are_the_same_wherever_the_stream_is_cut() {
    let end = json!({"metadata": {"resourceVersion": "9", "annotations": {"a": "b", "k8s.io/initial-events-end": "true"}}});
    let status = json!({"metadata": {}, "status": "Failure", "code": 410, "reason": "Expired", "message": "m",
        "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "x", "field": "f"}], "retryAfterSeconds": 3}});
    let stream = [
        event("ADDED", "ConfigMap", &map("one", 7)),
        event("BOOKMARK", "ConfigMap", &end),
        event("BOOKMARK", "ConfigMap", &json!({"metadata": {"resourceVersion": "11"}})),
        event("DELETED", "ConfigMap", &map("one", 12)),
        event("ERROR", "Status", &status),
    ]
    .concat();
    let want = [
        "Added ConfigMap here/one",
        "Bookmark { initial_end: true } ConfigMap /",
        "Bookmark { initial_end: false } ConfigMap /",
        "Deleted ConfigMap here/one",
        "410 Expired [StatusCause { reason: \"ResourceVersionTooLarge\", message: \"x\", field: \"f\" }]",
    ]
    .map(str::to_owned);
    for cut in 0..=stream.len() {
        let (told, is_within) = frames(&[&stream[..cut], &stream[cut..]]);
        assert_eq!((told.as_slice(), is_within), (&want[..], Ok(false)), "cut at {cut}");
    }
    // A timeout in the middle of a frame is no end.
    assert_eq!(frames(&[&stream[..stream.len() - 1]]).1, Ok(true));
    assert_eq!(frames(&[&stream[..2]]).1, Ok(true));
    let refused = enveloped("Status", &message("Status", &status));
    let read = StatusFrame::read(&refused).expect("a Status");
    assert_eq!((read.code, read.retry_after_seconds, read.message.as_str()), (410, 3, "m"));
    assert!(StatusFrame::read(&enveloped("ConfigMap", &message("ConfigMap", &map("a", 1)))).is_err());
    assert_eq!(parts(&[&refused]), (vec!["410 Expired".into()], Ok(true)));
}

#[test]
fn what_is_too_long_is_refused_at_its_length() {
    let too_long = OBJECT_BYTES_MAX + 1;
    let mut raw = ListForm::MetadataFirst.metadata_field(&[]);
    ListForm::MetadataFirst.open_item(too_long, &mut raw);
    let mut item = Vec::new();
    Envelope::new("v1", "ConfigMapList").open(raw.len() + too_long, &mut item);
    item.extend_from_slice(&raw);
    assert_eq!(parts(&[&item]), (vec![], Err(WireError::TooLong)));
    let mut frame = (too_long as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(b"\x0a\x05ADDED");
    assert_eq!(frames(&[&frame]), (vec![], Err(WireError::TooLong)));
    // A field that nobody knows is passed over, however long it is, and costs no memory.
    let mut list = Vec::new();
    Envelope::new("v1", "ConfigMapList").open(6 + (1 << 31), &mut list);
    list.extend_from_slice(b"\x7a\x80\x80\x80\x80\x08");
    assert_eq!(parts(&[&list, &[0; 1000]]), (vec![], Ok(false)));
}

#[test]
fn what_no_server_writes_is_garbled() {
    let envelope = |raw: &[u8]| enveloped("ConfigMapList", raw);
    let lists: &[&[u8]] = &[
        b"{\"kind\":\"ConfigMapList\"}",
        b"k8s\x01",
        // A message before its type, one of another kind, and a second one.
        b"k8s\0\x12\x00",
        &enveloped("ConfigMap", b"\x0a\x00"),
        &[&envelope(b"")[..], b"\x12\x00"].concat(),
        // A list that is a number, or in a coding.
        b"k8s\0\x0a\x06\x12\x04List\x10\x01",
        b"k8s\0\x0a\x06\x12\x04List\x1a\x01x",
        // A group, its end, a number of no form, the number 0, and one of 70 bits.
        &envelope(b"\x0b\x0c"),
        &envelope(b"\x0c"),
        &envelope(b"\x0f"),
        &envelope(b"\x02\x00"),
        &envelope(b"\x78\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        // Fields longer than what they are in, and half of one.
        &envelope(b"\x12\x05ab"),
        &envelope(b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        &envelope(b"\x12"),
        &envelope(b"\x12\x02\x0a\x05"),
        &envelope(b"\x12\x04\x0a\x02\x0a\x07"),
        // An item and metadata that are numbers, metadata that come twice, a name that is not UTF-8.
        &envelope(b"\x10\x01"),
        &envelope(b"\x08\x01"),
        &envelope(b"\x0a\x00\x0a\x00"),
        &envelope(b"\x12\x05\x0a\x03\x0a\x01\xff"),
        &envelope(b"\x12\x04\x0a\x00\x0a\x00"),
    ];
    for body in lists {
        let (_, end) = parts(&[body]);
        assert!(matches!(end, Err(WireError::Garbled { .. })), "{body:?}: {end:?}");
    }
    let framed = |frame: &[u8]| [&(frame.len() as u32).to_be_bytes()[..], frame].concat();
    let object = b"\x12\x06\x0a\x04k8s\0";
    let events: &[&[u8]] = &[
        b"",
        b"\x0a\x05ADDED",
        object,
        b"\x0a\x05ADDED\x12\x00",
        b"\x0a\x05ADDED\x12\x06\x0a\x04{\"a\"",
        &[&b"\x0a\x07CHANGED"[..], object].concat(),
        &[&b"\x0a\x05ADDED"[..], object, object].concat(),
        &[&b"\x0a\x05ADDED"[..], object, b"\x0a"].concat(),
    ];
    for frame in events {
        let (_, end) = frames(&[&framed(frame)]);
        assert!(matches!(end, Err(WireError::Garbled { .. })), "{frame:?}: {end:?}");
    }
}

#[test]
fn messages_in_messages_cost_no_stack() {
    // Nothing here goes deeper than the annotations of an object, whatever is in it.
    let mut deep = Vec::new();
    for _ in 0..1000 {
        let mut outer = Vec::new();
        ListForm::MetadataFirst.open_item(deep.len(), &mut outer);
        outer.extend_from_slice(&deep);
        deep = outer;
    }
    let (told, is_whole) = parts(&[&enveloped("ConfigMapList", &deep)]);
    assert_eq!((told.len(), is_whole), (3, Ok(true)), "{told:?}");
}
