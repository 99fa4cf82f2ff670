//! More operations than ten thousand.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-too-many-operations",
    from: "kubernetes#74534",
    who: Who::Admin,
    size: Sizes { full: 80_000, ten: 10_001 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(&[413, 400, 422]),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-too-many-operations", r#""data":{"k":"v"}"#);
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let all = joined(size, ",", |_| r#"{"op":"test","path":"/data/k","value":"v"}"#.to_owned());
    Request::patch(format!("{CONFIG_MAPS}/patches-too-many-operations"), JSON_PATCH, format!("[{all}]"))
}
