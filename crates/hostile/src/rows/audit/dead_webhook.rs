//! An audit webhook that is not there, while large objects are written: what is noted of them waits for it.

use crate::prelude::*;

const NAME: &str = "audit-dead-webhook";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 400, ten: 10 },
    beside: Beside::DeadAuditWebhook,
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[201, 429]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { namespace_of(&stage, NAME).await.map(drop) })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let data = format!(r#""data":{{"k":"{}"}}"#, "x".repeat(256 << 10));
        let create = move |index: usize| {
            Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), &data))
        };
        stage.each(16, size, create).await
    })
}
