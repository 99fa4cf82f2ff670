//! Additions at indices that no array has, up to 2^63: who makes room for them has none left.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-array-indices",
    who: Who::Admin,
    size: Sizes { full: 9_000, ten: 90 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-array-indices", "");
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(_size: usize) -> Request {
    let patch = r#"[{"op":"add","path":"/data","value":[]},{"op":"add","path":"/data/9223372036854775807","value":1}]"#;
    Request::patch(format!("{CONFIG_MAPS}/patches-array-indices"), JSON_PATCH, patch)
}
