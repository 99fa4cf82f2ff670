//! A disk that takes nothing of an audit log, while many read.

use crate::prelude::*;

const NAME: &str = "audit-full-disk";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 50 },
    beside: Beside::FullDisk,
    act: Act::Scene(scene),
    law: Law::says(&[200, 429]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(64, size, |_| Request::get(CONFIG_MAPS)).await })
}
