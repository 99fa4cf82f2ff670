//! A webhook whose answers have a hundred megabytes.

use serde_json::json;

use crate::hooked::Hooked;
use crate::prelude::*;

const NAME: &str = "webhooks-flood";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 8, ten: 2 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[500]).together(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Hooked::new(NAME).prepare(stage, json!({ "flood": 100 << 20 }))
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let create =
            |index: usize| Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), ""));
        stage.each(4, size, create).await
    })
}
