//! A list that is a map by its items' keys, and a set, of a hundred thousand: each is compared with the
//! others.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-list-keys",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 1_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let properties = r#""m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}},"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}"#;
    let made = definition("listkeys", &object_schema(properties), "");
    Box::pin(async move { make_served(&stage, made, "listkeys").await })
}

fn request(size: usize) -> Request {
    let items = joined(size, ",", |index| format!(r#"{{"k":"{index:x}"}}"#));
    let set = joined(size, ",", |index| format!(r#""{index:x}""#));
    // The first of each once more, so that they are refused.
    let members = format!(r#""m":[{items},{{"k":"0"}}],"s":[{set},"0"]"#);
    Request::post(custom_path("listkeys"), JSON, custom("listkeys", "one", &members))
}
