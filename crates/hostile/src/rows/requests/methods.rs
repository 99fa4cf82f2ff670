//! Ten thousand methods that there are none of: who counts requests by method has a counter for each.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-methods",
    from: "CVE-2022-21698",
    who: Who::Anonymous,
    size: Sizes { full: 10_000, ten: 200 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 401, 403, 405]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        stage.each(8, size, |index| Request::new(&format!("M{index:X}"), "/api/v1/pods")).await
    })
}
