//! A thousand watches of everything, by nobody.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-watches-without-rights",
    who: Who::Anonymous,
    size: Sizes { full: 1_000, ten: 50 },
    act: Act::Scene(scene),
    law: Law::says(&[401, 403]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(100, size, |_| Request::get("/api/v1/secrets?watch=1")).await })
}
