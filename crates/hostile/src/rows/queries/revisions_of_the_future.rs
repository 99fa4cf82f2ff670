//! LISTs of a state that is yet to come: each waits for it as long as it may.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-revisions-of-the-future",
    who: Who::Admin,
    size: Sizes { full: 400, ten: 20 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 429, 500, 504]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let path = |index: usize| match index % 10 {
            0 => format!("{CONFIG_MAPS}?resourceVersion=18446744073709551616{}", "0".repeat(1_000)),
            _ => format!("{CONFIG_MAPS}?resourceVersion={}", 1_000_000_000 + index),
        };
        stage.each(size, size, move |index| Request::get(path(index))).await
    })
}
