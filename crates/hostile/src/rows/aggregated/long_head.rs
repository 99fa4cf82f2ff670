//! A server behind an APIService whose answer has a header of a megabyte.

use crate::behind::Behind;
use crate::prelude::*;

const NAME: &str = "aggregated-long-head";
const BEHIND: Behind = Behind::new(NAME);

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 200, ten: 10 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[503]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { BEHIND.start(&stage).await })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(16, size, |_index| BEHIND.ask("long-head")).await })
}
