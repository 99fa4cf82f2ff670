//! A webhook that takes a second for each of a thousand writes at once.

use serde_json::json;

use crate::hooked::Hooked;
use crate::prelude::*;

const NAME: &str = "webhooks-slow";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[201, 429, 500]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Hooked::new(NAME).prepare(stage, json!({ "allowed": true, "delay_ms": 1_000 }))
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let create =
            |index: usize| Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), ""));
        stage.each(1_000, size, create).await
    })
}
