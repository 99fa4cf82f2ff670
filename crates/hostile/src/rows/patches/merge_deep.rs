//! A merge patch of objects in objects, and a null at the bottom.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-merge-deep",
    who: Who::Admin,
    size: Sizes { full: 400_000, ten: 20_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-merge-deep", "");
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let patch = format!("{}null{}", r#"{"a":"#.repeat(size), "}".repeat(size));
    Request::patch(format!("{CONFIG_MAPS}/patches-merge-deep"), MERGE_PATCH, patch)
}
