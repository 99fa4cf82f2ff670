//! A webhook that ends each connection in the middle of a call.

use serde_json::json;

use crate::hooked::Hooked;
use crate::prelude::*;

const NAME: &str = "webhooks-cut-off";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 200, ten: 10 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[500]).many(30),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Hooked::new(NAME).prepare(stage, json!({ "cut": true }))
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let create =
            |index: usize| Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), ""));
        stage.each(16, size, create).await
    })
}
