//! A server behind an APIService that says that its answer is longer than it is, and ends.

use crate::behind::Behind;
use crate::prelude::*;

const NAME: &str = "aggregated-lying-about-length";
const BEHIND: Behind = Behind::new(NAME);

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 200, ten: 10 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Closed]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { BEHIND.start(&stage).await })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(16, size, |_index| BEHIND.ask("lies")).await })
}
