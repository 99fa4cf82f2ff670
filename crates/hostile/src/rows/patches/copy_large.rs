//! A text of a megabyte, copied thousands of times within one JSON patch.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-copy-large",
    from: "kubernetes#74534",
    who: Who::Admin,
    size: Sizes { full: 2_000, ten: 20 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let text = "x".repeat(900_000);
    let made = config_map("patches-copy-large", &format!(r#""data":{{"k":"{text}"}}"#));
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let copies =
        joined(size, ",", |index| format!(r#"{{"op":"copy","from":"/data/k","path":"/data/c{index}"}}"#));
    Request::patch(format!("{CONFIG_MAPS}/patches-copy-large"), JSON_PATCH, format!("[{copies}]"))
}
