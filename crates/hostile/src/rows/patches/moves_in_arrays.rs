//! Ten thousand moves from the front of a long array to its end: each of them moves all that is between.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-moves-in-arrays",
    who: Who::Admin,
    size: Sizes { full: 9_990, ten: 99 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-moves-in-arrays", "");
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let items = joined(size * 100, ",", |_| "0".to_owned());
    let moves = joined(size, ",", |_| r#"{"op":"move","from":"/data/0","path":"/data/-"}"#.to_owned());
    let patch = format!(r#"[{{"op":"add","path":"/data","value":[{items}]}},{moves}]"#);
    Request::patch(format!("{CONFIG_MAPS}/patches-moves-in-arrays"), JSON_PATCH, patch)
}
