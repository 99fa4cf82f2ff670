//! Large writes at once behind a webhook that never answers.

use std::sync::Arc;

use serde_json::json;

use crate::hooked::Hooked;
use crate::prelude::*;

/// Of the one value that each has.
const BYTES: usize = 900 << 10;
const NAME: &str = "webhooks-hanging-large";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 200, ten: 10 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500, 504]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Hooked { timeout_seconds: 1, ..Hooked::new(NAME) }.prepare(stage, json!({ "hang": true }))
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let data: Arc<str> = format!(r#""data":{{"k":"{}"}}"#, "x".repeat(BYTES)).into();
        let create = move |index: usize| {
            Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), &data))
        };
        stage.each(200, size, create).await
    })
}
