//! A pointer of a million escapes, and one of a million steps.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-long-pointers",
    who: Who::Admin,
    size: Sizes { full: 1_400_000, ten: 14_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-long-pointers", "");
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let patch = format!(
        r#"[{{"op":"add","path":"/data/{}","value":1}},{{"op":"remove","path":"{}"}}]"#,
        "~1".repeat(size / 2),
        "/a".repeat(size / 2)
    );
    Request::patch(format!("{CONFIG_MAPS}/patches-long-pointers"), JSON_PATCH, patch)
}
