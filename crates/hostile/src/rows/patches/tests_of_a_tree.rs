//! The same large value looked at by thousands of tests.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-tests-of-a-tree",
    who: Who::Admin,
    size: Sizes { full: 9_000, ten: 90 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(&[200, 400, 413, 422, 429]),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let text = "x".repeat(900_000);
    let made = config_map("patches-tests-of-a-tree", &format!(r#""data":{{"k":"{text}"}}"#));
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let text = "x".repeat(900_000);
    let all = joined(size, ",", |_| r#"{"op":"copy","from":"/data/k","path":"/data/k"}"#.to_owned());
    let patch = format!(r#"[{{"op":"test","path":"/data/k","value":"{text}"}},{all}]"#);
    Request::patch(format!("{CONFIG_MAPS}/patches-tests-of-a-tree"), JSON_PATCH, patch)
}
