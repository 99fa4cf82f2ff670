//! What reads a stored object withstands any input, and what it read it says again with its revision.

use forebay_apimachinery::{Key, Lease, Revision, json};
use forebay_fuzz::{Corpus, gist, run};
use forebay_object::{Form, Interner, Layout, Object, Scope};

const JSON_WORDS: &[&str] = &[
    "{}",
    "[]",
    "null",
    "true",
    "\"",
    "\"a\":",
    "1e5",
    "-0",
    "\\u0000",
    "\\ud800",
    "é",
    "{\"a\":1,\"a\":2}",
];

#[test]
fn fuzz_stored_objects() {
    let inputs: &[&[u8]] = &[
        br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","labels":{"a":"b","c":"d"}},"spec":{"nodeName":"x"},"status":{"phase":"Running"}}"#,
        br#"{"apiVersion":"e.com/v1","kind":"W","metadata":{"name":"a","labels":{}},"spec":{"nodeName":5,"deep":[{"a":"}"}]}}"#,
    ];
    let layouts = [Form::Typed, Form::Whole].map(|form| Layout {
        prefix_len: "/registry/pods/".len(),
        scope: Scope::Namespaced,
        form,
        fields: ["spec.nodeName", "status.phase", "metadata.labels.a"]
            .map(|path| path.split('.').map(str::to_owned).collect())
            .to_vec(),
    });
    run("stored objects", &Corpus { inputs, words: JSON_WORDS, ..Corpus::default() }, |input| {
        layouts.each_ref().map(|layout| {
            let (key, revision) = (Key::from("/registry/pods/n/a"), Revision::from_log(42));
            let object =
                Object::decode(layout, key, revision, input, &mut Interner::default()).map_err(gist)?;
            for revision in [None, Some(Revision::from_log(1_234_567_890_123))] {
                let (mut body, mut metadata) = (Vec::new(), Vec::new());
                object.write_body(revision, Some("v9"), &mut body);
                object.write_metadata(revision, &mut metadata);
                assert!(!body.is_empty() && !metadata.is_empty());
            }
            // What was an object is the same object with its revision.
            if let Ok(json::Parsed { value: mut want, duplicates }) = json::parse(input, &Lease::of_server())
                && duplicates.is_empty()
                && layout.form == Form::Whole
            {
                want["metadata"]["resourceVersion"] = "42".into();
                let mut body = Vec::new();
                object.write_body(None, None, &mut body);
                assert_eq!(json::parse(&body, &Lease::of_server()).map(|body| body.value), Ok(want));
            }
            let fields = (0..3).map(|index| object.field(index).is_some()).collect::<Vec<_>>();
            Ok::<_, String>((fields, object.label("a").is_some(), object.stored_version().len()))
        })
    });
}
