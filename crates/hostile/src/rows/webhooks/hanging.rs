//! A thousand writes at once behind a webhook that never answers.

use serde_json::json;

use crate::hooked::Hooked;
use crate::prelude::*;

const NAME: &str = "webhooks-hanging";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500, 504]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Hooked { timeout_seconds: 5, ..Hooked::new(NAME) }.prepare(stage, json!({ "hang": true }))
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let create =
            |index: usize| Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), ""));
        stage.each(1_000, size, create).await
    })
}
