//! An object of hundreds of thousands of fields that its schema does not know, in lists and in places that
//! keep what they do not know.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-pruning",
    who: Who::Admin,
    size: Sizes { full: 300_000, ten: 3_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let properties = r#""kept":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"list":{"type":"array","items":{"type":"object"}}"#;
    let made = definition("prunings", &object_schema(properties), "");
    Box::pin(async move { make_served(&stage, made, "prunings").await })
}

fn request(size: usize) -> Request {
    let items = joined(size / 3, ",", |_| r#"{"a":0}"#.to_owned());
    let kept = joined(size / 3, ",", |index| format!(r#""{index:x}":0"#));
    let members = format!(r#""kept":{{{kept}}},"list":[{items}],"x":[{items}]"#);
    Request::post(custom_path("prunings"), JSON, custom("prunings", "one", &members))
}
