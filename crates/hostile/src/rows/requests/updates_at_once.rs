//! A thousand patches of the same object at once: each is tried again when another was first.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-updates-at-once",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 50 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[200, 409, 429]).many(20),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("requests-updates-at-once", "");
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let path = format!("{CONFIG_MAPS}/requests-updates-at-once");
        stage
            .each(64, size, move |index| {
                Request::patch(path.clone(), MERGE_PATCH, format!(r#"{{"data":{{"k":"{index}"}}}}"#))
            })
            .await
    })
}
