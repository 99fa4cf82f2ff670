//! A default of half a megabyte for each item of a list of two thousand that are empty: a gigabyte out of six
//! kilobytes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-default-in-a-list",
    who: Who::Admin,
    size: Sizes { full: 2_000, ten: 20 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    let text = "d".repeat(size * 250);
    let item = object_schema(&format!(r#""d":{{"type":"string","default":"{text}"}}"#));
    // A required member that is missing: it is refused at any size, after defaulting.
    let properties = format!(r#""all":{{"type":"array","items":{item}}},"must":{{"type":"string"}}"#);
    let schema = format!(r#"{{"type":"object","required":["must"],"properties":{{{properties}}}}}"#);
    let made = definition("defaults", &schema, "");
    Box::pin(async move { make_served(&stage, made, "defaults").await })
}

fn request(size: usize) -> Request {
    let items = joined(size, ",", |_| "{}".to_owned());
    let members = format!(r#""all":[{items}]"#);
    Request::post(custom_path("defaults"), JSON, custom("defaults", "one", &members))
}
