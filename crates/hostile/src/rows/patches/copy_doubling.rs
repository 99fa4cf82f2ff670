//! JSON patches that copy everything into itself, again and again: each doubles it.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-copy-doubling",
    from: "CVE-2019-1002100",
    who: Who::Admin,
    size: Sizes { full: 30, ten: 30 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-copy-doubling", r#""data":{"k":"v"}"#);
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let copies =
        joined(size, ",", |index| format!(r#"{{"op":"copy","from":"/data","path":"/data/c{index}"}}"#));
    let path = format!("{CONFIG_MAPS}/patches-copy-doubling");
    Request::patch(path, JSON_PATCH, format!("[{copies}]"))
}
