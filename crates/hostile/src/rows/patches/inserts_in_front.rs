//! Ten thousand inserts in front of a long array.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-inserts-in-front",
    who: Who::Admin,
    size: Sizes { full: 9_990, ten: 99 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-inserts-in-front", "");
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let items = joined(size * 100, ",", |_| "0".to_owned());
    let inserts = joined(size, ",", |_| r#"{"op":"add","path":"/data/0","value":1}"#.to_owned());
    let patch = format!(r#"[{{"op":"add","path":"/data","value":[{items}]}},{inserts}]"#);
    Request::patch(format!("{CONFIG_MAPS}/patches-inserts-in-front"), JSON_PATCH, patch)
}
