//! A webhook that has to be asked and is not there.

use crate::hooked::Hooked;
use crate::prelude::*;

const NAME: &str = "webhooks-dead";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[500]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { Hooked::new(NAME).dead(&stage).await })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let create =
            |index: usize| Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), ""));
        stage.each(64, size, create).await
    })
}
