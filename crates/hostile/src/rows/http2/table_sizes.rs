//! Settings that make the table of headers as large as there are numbers, and nothing again.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-table-sizes",
    who: Who::Anonymous,
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Away(http2::ENHANCE_YOUR_CALM), Said::Closed, Said::Open]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        http2
            .pour(size / 100, stage.push(), |_| {
                [
                    http2::settings(&[(http2::TABLE_SIZE, u32::MAX)]),
                    http2::settings(&[(http2::TABLE_SIZE, 0)]),
                ]
                .concat()
                .repeat(50)
            })
            .await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
