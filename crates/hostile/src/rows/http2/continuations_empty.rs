//! A head that goes on in frames without anything in them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-continuations-empty",
    from: "CVE-2024-27316",
    who: Who::Anonymous,
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 431])
        .or(&[
            Said::Away(http2::PROTOCOL_ERROR),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Away(http2::FRAME_SIZE_ERROR),
            Said::Closed,
            Said::Open,
        ])
        .many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let block = http2.block("GET", "/livez", &[]);
        http2.write(&http2::frame(http2::HEADERS, http2::END_STREAM, 1, &block)).await;
        let more = http2::frame(http2::CONTINUATION, 0, 1, &[]).repeat(1_000);
        http2.pour(size / 1_000, stage.push(), |_| more.clone()).await;
        http2.write(&http2::frame(http2::CONTINUATION, http2::END_HEADERS, 1, &[])).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
