//! A webhook whose patch doubles the object with each of its operations, and whose every answer has ten
//! thousand more of them.

use serde_json::{Value, json};

use crate::hooked::Hooked;
use crate::prelude::*;

const NAME: &str = "webhooks-wild-patches";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 10_000, ten: 100 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    // One that copies no more than may be is taken, or is larger than an object may be.
    law: Law::says(&[413, 429, 500]).many(30),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    Box::pin(async move {
        let first = json!({ "op": "add", "path": "/data", "value": { "k": "x".repeat(1 << 10) } });
        let doubled =
            (0..40).map(|at| json!({ "op": "copy", "from": "/data", "path": format!("/data/copy-{at}") }));
        let more = (0..size).map(|at| json!({ "op": "add", "path": "/data/k", "value": at.to_string() }));
        let operations: Vec<Value> = std::iter::once(first).chain(doubled).chain(more).collect();
        let answer = json!({ "allowed": true, "patchType": "JSONPatch", "patch": operations });
        Hooked::new(NAME).start(&stage, answer).await.map(drop)
    })
}

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let create =
            |index: usize| Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), ""));
        stage.each(4, 20, create).await
    })
}
