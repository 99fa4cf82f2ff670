//! An object judged by a schema whose alternatives have alternatives: 2^13 of them, none of which it is.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-any-of",
    who: Who::Admin,
    size: Sizes { full: 13, ten: 6 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    let leaf = r#"{"properties":{"p":{"minLength":3}}}"#.to_owned();
    let tree = (0..size).fold(leaf, |inner, _| format!(r#"{{"anyOf":[{inner},{inner}]}}"#));
    let schema = format!(r#"{{"type":"object","properties":{{"p":{{"type":"string"}}}},"allOf":[{tree}]}}"#);
    let made = definition("anyofs", &schema, "");
    Box::pin(async move { make_served(&stage, made, "anyofs").await })
}

fn request(_size: usize) -> Request {
    Request::post(custom_path("anyofs"), JSON, custom("anyofs", "one", r#""p":"a""#))
}
