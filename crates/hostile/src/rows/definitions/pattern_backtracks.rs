//! A text on which a pattern that backtracks never ends.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-pattern-backtracks",
    who: Who::Admin,
    size: Sizes { full: 900_000, ten: 9_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let properties = r#""p":{"type":"string","pattern":"^(a+)+$"},"q":{"type":"string","pattern":"^(([a-z])+.)+[A-Z]([a-z])+$"}"#;
    let made = definition("backtracks", &object_schema(properties), "");
    Box::pin(async move { make_served(&stage, made, "backtracks").await })
}

fn request(size: usize) -> Request {
    let text = "a".repeat(size);
    let members = format!(r#""p":"{text}!","q":"{text}""#);
    Request::post(custom_path("backtracks"), JSON, custom("backtracks", "one", &members))
}
