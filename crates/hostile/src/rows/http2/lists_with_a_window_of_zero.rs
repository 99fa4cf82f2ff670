//! LISTs of large objects on one connection, which has no window to take them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-lists-with-a-window-of-zero",
    who: Who::Admin,
    size: Sizes { full: 100, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::lists_that_nobody_takes().many(10),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    Box::pin(async move {
        let text = "x".repeat(size * 9_000);
        for index in 0..10 {
            let made = config_map(&format!("http2-lists-{index}"), &format!(r#""data":{{"k":"{text}"}}"#));
            stage.make(Request::post(CONFIG_MAPS, JSON, made)).await?;
        }
        Ok(())
    })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { lists_that_nobody_takes(&stage, CONFIG_MAPS, size).await })
}
