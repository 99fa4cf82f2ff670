//! A server behind an APIService that dies in the middle of each watch.

use crate::behind::Behind;
use crate::prelude::*;

const NAME: &str = "aggregated-dying-watch";
const BEHIND: Behind = Behind::new(NAME);

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 500, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Closed]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { BEHIND.start(&stage).await })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(64, size, |_index| BEHIND.ask("dies?watch=1")).await })
}
