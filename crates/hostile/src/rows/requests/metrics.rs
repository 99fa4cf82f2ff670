//! `/metrics`, from 32 clients at once, again and again.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-metrics",
    who: Who::Admin,
    size: Sizes { full: 500, ten: 20 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 429]).many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(32, size, |_| Request::get("/metrics")).await })
}
