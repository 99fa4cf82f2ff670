//! Copies of a tree of small objects within the limit for copies, and then an operation that fails: the error
//! shows the patch.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-copy-then-fail",
    who: Who::Admin,
    size: Sizes { full: 100, ten: 10 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-copy-then-fail", r#""data":{"k":"v"}"#);
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let tree = joined(3_000, ",", |_| r#"{"a":0}"#.to_owned());
    let copies =
        joined(size, ",", |index| format!(r#"{{"op":"copy","from":"/data/t","path":"/data/c{index}"}}"#));
    let patch = format!(
        r#"[{{"op":"add","path":"/data/t","value":[{tree}]}},{copies},{{"op":"remove","path":"/none/here"}}]"#
    );
    Request::patch(format!("{CONFIG_MAPS}/patches-copy-then-fail"), JSON_PATCH, patch)
}
