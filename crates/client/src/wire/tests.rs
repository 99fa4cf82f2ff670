//! Streams and lists as servers write them, and as they might.

use forebay_apimachinery::{Key, Revision};
use forebay_object::{Form, Interner, Layout, Object, Scope};
use serde_json::Value;

use super::*;
use crate::limits::OBJECT_BYTES_MAX;

const STREAM: &str = concat!(
    r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u1","resourceVersion":"5","labels":{"app":"x\"}{"}},"spec":{"n":[1,2.5e3,{"deep":[[]]}]}}}"#,
    "\n",
    r#"{"object":{"metadata":{"resourceVersion":"7","name":"b\u00e9\ud83d\ude00"},"kind":"Pod","apiVersion":"v1"},"unknown":{"object":{"metadata":5}},"type":"MODIFIED"}"#,
    r#"{"type" : "DELETED", "object" : { "kind":"Pod", "apiVersion":"v1", "\u006detadata":{"\u006eame":"ö","resourceVersion":"abc"} } }"#,
    "\r\n \t",
    r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"13519","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"13520","annotations":{"k8s.io/initial-events-end":"false"}}}}"#,
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 3 (5)","reason":"Expired","code":410}}"#,
    "\n",
);

fn frames(pieces: &[&[u8]]) -> Result<Vec<Frame>, WireError> {
    let mut cutter = WatchFrames::new();
    let mut frames = Vec::new();
    for piece in pieces {
        cutter.push(piece);
        while let Some(frame) = cutter.next_frame()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

fn parts(pieces: &[&[u8]]) -> Result<(Vec<Part>, bool), WireError> {
    let mut cutter = ListItems::new();
    let mut parts = Vec::new();
    for piece in pieces {
        cutter.push(piece);
        while let Some(part) = cutter.next_part()? {
            parts.push(part);
        }
    }
    Ok((parts, cutter.is_whole()))
}

/// Parts but for the head, which knows more or less by where the pieces end.
fn parts_behind_head(pieces: &[&[u8]]) -> Vec<Part> {
    let (mut parts, is_whole) = parts(pieces).expect("a list");
    assert!(is_whole);
    assert!(matches!(parts.remove(0), Part::Head(_)));
    assert!(!parts.iter().any(|part| matches!(part, Part::Head(_))));
    parts
}

#[test]
fn a_stream_says_what_happened() {
    let frames = frames(&[STREAM.as_bytes()]).expect("frames");
    let kinds: Vec<&FrameKind> = frames.iter().map(|frame| &frame.kind).collect();
    let expired = StatusFrame {
        code: 410,
        reason: "Expired".into(),
        message: "too old resource version: 3 (5)".into(),
        ..StatusFrame::default()
    };
    let want = [
        FrameKind::Added,
        FrameKind::Modified,
        FrameKind::Deleted,
        FrameKind::Bookmark { initial_end: true },
        FrameKind::Bookmark { initial_end: false },
        FrameKind::Error(expired),
    ];
    assert_eq!(kinds, want.iter().collect::<Vec<_>>());
    let first = &frames[0].object;
    assert_eq!((&*first.namespace(), &*first.name(), &*first.uid()), ("default", "a", "u1"));
    assert_eq!((&*first.kind(), &*first.api_version(), first.revision()), ("Pod", "v1", Some(5)));
    assert_eq!((&*frames[1].object.name(), &*frames[1].object.namespace()), ("bé😀", ""));
    let deleted = &frames[2].object;
    assert_eq!((&*deleted.name(), &*deleted.resource_version(), deleted.revision()), ("ö", "abc", None));
}

#[test]
fn frames_are_the_same_wherever_the_stream_is_cut() {
    let stream = STREAM.as_bytes();
    let want = frames(&[stream]).expect("frames");
    for cut in 0..=stream.len() {
        assert_eq!(frames(&[&stream[..cut], &stream[cut..]]).as_ref(), Ok(&want), "cut at {cut}");
    }
    for len in [1, 2, 3, 7, 64] {
        assert_eq!(frames(&stream.chunks(len).collect::<Vec<_>>()).as_ref(), Ok(&want), "pieces of {len}");
    }
}

#[test]
fn a_stream_that_ends_in_a_frame_says_so() {
    let stream = b" \n{\"type\":\"ADDED\",\"object\":{}}\n";
    let mut cutter = WatchFrames::new();
    for (at, byte) in stream.iter().enumerate() {
        cutter.push(&[*byte]);
        let frame = cutter.next_frame().expect("frames");
        assert_eq!(frame.is_some(), at == stream.len() - 2);
        assert_eq!(cutter.is_within_frame(), (2..stream.len() - 2).contains(&at), "at {at}");
    }
}

#[test]
fn what_is_no_frame_is_garbled_and_stays_so() {
    let rows = [
        "plain text",
        "[]",
        r#"{"object":{}}"#,
        r#"{"type":"ADDED"}"#,
        r#"{"type":"OTHER","object":{}}"#,
        r#"{"type":5,"object":{}}"#,
        r#"{"type":"ADDED","object":null}"#,
        r#"{"type":"ADDED","object":{},"object":{}}"#,
        r#"{"type":"ADDED","object":{"metadata":{},"metadata":{}}}"#,
        r#"{"type":"ADDED","object":{"metadata":[]}}"#,
        r#"{"type":"ADDED","object":{"metadata":{"name":5}}}"#,
        "{\"type\":\"ADDED\",\"object\":{\"a\":\"\u{0}\u{1}\"",
    ];
    for row in &rows[..rows.len() - 1] {
        let mut cutter = WatchFrames::new();
        cutter.push(row.as_bytes());
        let error = cutter.next_frame().expect_err(row);
        cutter.push(STREAM.as_bytes());
        assert_eq!(cutter.next_frame(), Err(error), "{row}");
    }
    assert!(frames(&[b"{\"type\":\"ADDED\",\"object\":{\"a\":\"\xff\"}}"]).is_err());
    assert_eq!(frames(&[rows[rows.len() - 1].as_bytes()]), Ok(vec![]));
}

#[test]
fn a_million_brackets_are_one_object() {
    let depth = 1_000_000;
    let object = format!(r#"{{"metadata":{{"name":"a"}},"x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let stream = format!(r#"{{"type":"ADDED","object":{object}}}"#);
    let pieces: Vec<&[u8]> = stream.as_bytes().chunks(1 << 16).collect();
    let frames = frames(&pieces).expect("frames");
    assert_eq!(frames[0].object.bytes(), object.as_bytes());
}

#[test]
fn a_long_string_in_small_pieces_is_looked_at_once() {
    // Quadratic time would be hours.
    let stream = format!(r#"{{"type":"ADDED","object":{{"x":["{}"]}}}}"#, "y".repeat(OBJECT_BYTES_MAX - 100));
    let frames = frames(&stream.as_bytes().chunks(16).collect::<Vec<_>>()).expect("frames");
    assert_eq!(frames.len(), 1);
}

#[test]
fn a_frame_or_an_item_that_is_too_long_is_refused_however_it_is_cut() {
    let object = format!(r#"{{"x":"{}"}}"#, "y".repeat(OBJECT_BYTES_MAX));
    let stream = format!(r#"{{"type":"ADDED","object":{object}}}"#);
    let list = format!(r#"{{"items":[{{}},{object}]}}"#);
    for len in [1 << 20, stream.len()] {
        assert_eq!(frames(&stream.as_bytes().chunks(len).collect::<Vec<_>>()), Err(WireError::TooLong));
        assert_eq!(parts(&list.as_bytes().chunks(len).collect::<Vec<_>>()), Err(WireError::TooLong));
    }
    // Without its end it is refused as well.
    assert_eq!(frames(&[&stream.as_bytes()[..OBJECT_BYTES_MAX + 1]]), Err(WireError::TooLong));
}

const LIST: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42","continue":"e30=","remainingItemCount":3},"items":[{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"items":[{}]}},{"metadata":{"annotations":{"k":"]}"},"name":"b"}}]}"#;

#[test]
fn a_list_comes_item_by_item_and_says_where_it_ends() {
    let meta = ListMeta {
        kind: "PodList".into(),
        api_version: "v1".into(),
        revision: Some("42".into()),
        next: Some("e30=".into()),
        remaining: Some(3),
    };
    let (parts, is_whole) = parts(&[LIST.as_bytes()]).expect("a list");
    let [Part::Head(head), Part::Item(a), Part::Item(b), Part::End(end)] = &parts[..] else {
        panic!("{parts:?}");
    };
    assert_eq!((head, end, is_whole), (&meta, &meta, true));
    assert_eq!((&*a.name(), a.revision(), &*b.name(), b.revision()), ("a", Some(1), "b", None));
}

#[test]
fn items_are_the_same_wherever_the_list_is_cut_and_whatever_the_order_of_its_members() {
    let value: Value = serde_json::from_str(LIST).expect("JSON");
    let member = |name: &str| format!("\"{name}\":{}", value[name]);
    let names = ["kind", "apiVersion", "metadata", "items"];
    let want = parts_behind_head(&[LIST.as_bytes()]);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1], [1, 3, 2, 0], [3, 0, 1, 2]] {
        let members = order.map(|index| member(names[index])).join(" ,\n");
        let list = format!("{{\"z\":[1,{{}}],{members}}}\n");
        let list = list.as_bytes();
        for cut in 0..=list.len() {
            let got = parts_behind_head(&[&list[..cut], &list[cut..]]);
            assert_eq!(got, want, "{order:?} cut at {cut}");
        }
        assert_eq!(parts_behind_head(&list.chunks(1).collect::<Vec<_>>()), want);
    }
}

#[test]
fn an_item_is_given_before_the_rest_of_the_list_came() {
    let mut cutter = ListItems::new();
    let (first, rest) = LIST.split_at(LIST.find(r#",{"metadata":{"annotations""#).expect("it is there"));
    cutter.push(first.as_bytes());
    assert!(matches!(cutter.next_part(), Ok(Some(Part::Head(_)))));
    assert!(matches!(cutter.next_part(), Ok(Some(Part::Item(_)))));
    assert_eq!(cutter.next_part(), Ok(None));
    assert!(!cutter.is_whole());
    cutter.push(rest.as_bytes());
    assert!(matches!(cutter.next_part(), Ok(Some(Part::Item(_)))));
    assert!(matches!(cutter.next_part(), Ok(Some(Part::End(_)))));
    assert_eq!((cutter.next_part(), cutter.is_whole()), (Ok(None), true));
}

#[test]
fn a_list_may_be_empty_but_not_missing() {
    for list in [r#"{"items":[]}"#, r#"{"items":null,"metadata":null}"#, r#"{"metadata":{},"items":[ ]}"#] {
        let (parts, is_whole) = parts(&[list.as_bytes()]).expect(list);
        assert_eq!(parts, [Part::Head(ListMeta::default()), Part::End(ListMeta::default())], "{list}");
        assert!(is_whole);
    }
    let rows = [
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1"}}"#,
        "{}",
        r#"{"items":{}}"#,
        r#"{"items":[5]}"#,
        r#"{"items":[],"items":[]}"#,
        r#"{"metadata":{},"metadata":{},"items":[]}"#,
        r#"{"items":[]}{}"#,
        r#"{"items":[{}],"kind":"Status"}"#,
        "plain text",
    ];
    for list in rows {
        assert!(parts(&[list.as_bytes()]).is_err(), "{list}");
    }
}

#[test]
fn a_status_instead_of_a_list_is_known_wherever_its_kind_stands() {
    for body in [
        r#"{"kind":"Status","metadata":{"continue":"e30"},"reason":"Expired","code":410,"details":{}}"#,
        r#"{"details":{},"metadata":{"continue":"e30"},"reason":"Expired","code":410,"kind":"Status"}"#,
    ] {
        let (parts, is_whole) = parts(&body.as_bytes().chunks(5).collect::<Vec<_>>()).expect(body);
        let want = StatusFrame {
            code: 410,
            reason: "Expired".into(),
            next: Some("e30".into()),
            ..StatusFrame::default()
        };
        assert_eq!((parts, is_whole), (vec![Part::Status(want)], true));
    }
}

fn value(text: &str, form: Form) -> String {
    let of = TypeMeta { kind: "Pod".into(), api_version: "v1".into() };
    let value = ObjectText::read(text.as_bytes()).expect(text).into_value(form, &of);
    String::from_utf8(value).expect("text")
}

#[test]
fn a_value_has_its_type_in_front_and_no_resource_version() {
    const WANT: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u"},"spec":{}}"#;
    let rows = [
        WANT,
        // An item of a list.
        r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"spec":{}}"#,
        r#"{"metadata":{"resourceVersion":"1","name":"a","uid":"u"},"spec":{}}"#,
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1","uid":"u"},"spec":{}}"#,
        r#"{"metadata":{"name":"a","uid":"u","resourceVersion":null},"spec":{},"apiVersion":"v1","kind":"Pod"}"#,
        r#"{"kind":"Pod","metadata":{"resourceVersion":"1","resourceVersion":"2","name":"a","uid":"u"},"spec":{},"apiVersion":"v1"}"#,
        " { \"kind\" : \"Pod\",\n\"apiVersion\": \"v1\", \"metadata\":{ \"name\":\"a\" ,\"uid\":\"u\" , \"\\u0072esourceVersion\" : \"1\" } ,\"spec\" : { } } ",
        r#"{"kind":"Pod","kind":"Pod","metadata":{"name":"a","uid":"u"},"spec":{},"apiVersion":"v1","kind":null}"#,
    ];
    for row in rows {
        assert_eq!(value(row, Form::Typed), WANT, "{row}");
    }
    assert_eq!(
        value(r#"{"metadata":{"resourceVersion":"1"}}"#, Form::Typed),
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#
    );
    assert_eq!(value("{}", Form::Typed), r#"{"kind":"Pod","apiVersion":"v1"}"#);
    assert_eq!(value(r#"{"kind":"A"}"#, Form::Whole), r#"{"apiVersion":"v1","kind":"Pod"}"#);
    // The order of a custom resource is its own.
    let whole =
        r#"{"apiVersion":"g/v1","kind":"Foo","metadata":{"name":"a","resourceVersion":"1"},"spec":[" , "]}"#;
    assert_eq!(value(whole, Form::Whole), whole.replace(r#","resourceVersion":"1""#, ""));
}

#[test]
fn values_are_what_the_cache_decodes() {
    for (form, index) in [(Form::Typed, 0), (Form::Typed, 1), (Form::Typed, 2), (Form::Whole, 0)] {
        let frame = &frames(&[STREAM.as_bytes()]).expect("frames")[index];
        let layout =
            Layout { prefix_len: "/registry/pods/".len(), scope: Scope::Namespaced, form, fields: vec![] };
        let (namespace, name) = (frame.object.namespace(), frame.object.name());
        let key = Key::from(format!("/registry/pods/{namespace}/{name}"));
        let revision = Revision::from_log(frame.object.revision().unwrap_or(9));
        let value = frame.object.clone().into_value(form, &TypeMeta::default());
        let object = Object::decode(&layout, key, revision, &value, &mut Interner::default()).expect("valid");
        assert_eq!((object.namespace(), object.name()), (&*namespace, &*name));
        let mut metadata = Vec::new();
        object.write_metadata(None, &mut metadata);
        let metadata: Value = serde_json::from_slice(&metadata).expect("JSON");
        let came: Value = serde_json::from_slice(frame.object.bytes()).expect("JSON");
        assert_eq!(metadata["resourceVersion"], revision.to_string());
        assert_eq!(
            (&metadata["name"], &metadata["uid"]),
            (&came["metadata"]["name"], &came["metadata"]["uid"])
        );
    }
}

#[test]
fn only_decimal_numbers_are_revisions() {
    let rows = [("5", Some(5)), ("0", Some(0)), ("18446744073709551615", Some(u64::MAX))];
    for (text, want) in rows {
        assert_eq!(decimal(text), want, "{text}");
    }
    for text in ["", "05", "00", "+5", "-5", "5a", "18446744073709551616", "0x5", " 5"] {
        assert_eq!(decimal(text), None, "{text}");
    }
}

#[test]
fn the_last_of_two_members_counts() {
    let object =
        br#"{"metadata":{"name":"a","resourceVersion":"1","name":"b","resourceVersion":"2","name":null}}"#;
    let object = ObjectText::read(object).expect("an object");
    assert_eq!((&*object.name(), object.revision()), ("b", Some(2)));
}
