//! An object as deep as it gets, where everything unknown is kept.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-deep-objects",
    who: Who::Admin,
    size: Sizes { full: 400_000, ten: 20_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let schema = r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#;
    let made = definition("deepobjects", schema, "");
    Box::pin(async move { make_served(&stage, made, "deepobjects").await })
}

fn request(size: usize) -> Request {
    let deep = format!("\"a\":{}0{}", r#"{"a":"#.repeat(size), "}".repeat(size));
    Request::post(custom_path("deepobjects"), JSON, custom("deepobjects", "one", &deep))
}
