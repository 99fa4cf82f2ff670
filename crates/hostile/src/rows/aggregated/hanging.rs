//! A server behind an APIService that never answers.

use crate::behind::Behind;
use crate::prelude::*;

const NAME: &str = "aggregated-hanging";
const BEHIND: Behind = Behind::new(NAME);

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 300, ten: 10 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[504, 429]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { BEHIND.start(&stage).await })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(64, size, |_index| BEHIND.ask("hang?timeout=1s")).await })
}
