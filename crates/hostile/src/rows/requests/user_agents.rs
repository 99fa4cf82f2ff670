//! Ten thousand clients that all have another name of a kilobyte, and ask for resources that there are none
//! of.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-user-agents",
    from: "CVE-2020-8552",
    size: Sizes { full: 10_000, ten: 200 },
    act: Act::Scene(scene),
    law: Law::says(&[403]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        stage
            .each(8, size, |index| {
                Request::get(format!("/apis/g{index}/v1/r{index}"))
                    .header("User-Agent", format!("{index}{}", "a".repeat(1_000)))
            })
            .await
    })
}
