//! A merge patch that takes away hundreds of thousands of members that are not there.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-merge-nulls",
    who: Who::Admin,
    size: Sizes { full: 200_000, ten: 2_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(&[200, 400, 413, 422, 429]),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-merge-nulls", "");
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let nulls = joined(size, ",", |index| format!(r#""{index:x}":null"#));
    Request::patch(
        format!("{CONFIG_MAPS}/patches-merge-nulls"),
        MERGE_PATCH,
        format!(r#"{{"data":{{{nulls}}}}}"#),
    )
}
