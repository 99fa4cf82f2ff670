//! A merge patch that is YAML full of aliases, though it says that it is JSON.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-merge-in-yaml",
    from: "CVE-2019-11253",
    who: Who::Admin,
    size: Sizes { full: 9, ten: 9 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(&[400, 413, 415, 422, 429]),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-merge-in-yaml", "");
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let levels = joined(size, "", |level| {
        let item = if level == 0 { "lol".to_owned() } else { format!("*l{}", level - 1) };
        format!("l{level}: &l{level} [{}]\n", joined(10, ", ", |_| item.clone()))
    });
    Request::patch(format!("{CONFIG_MAPS}/patches-merge-in-yaml"), MERGE_PATCH, levels)
}
