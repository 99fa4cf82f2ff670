//! A plugin that dies while it is asked, and does not come back.

use forebay_hook::kms::{KmsMethods, KmsMischief};

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "encryption-dead",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 30 },
    beside: Beside::Plugin(KmsMischief::Hangs, KmsMethods::All),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500, 503, 504]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let dies = async {
            tokio::time::sleep(stage.push()).await;
            stage.neighbours.plugin_dies();
        };
        let (tally, ()) = tokio::join!(super::secrets(stage.clone(), 200, size), dies);
        tally
    })
}
