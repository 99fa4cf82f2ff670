//! A body of half a million frames without anything in them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-empty-data",
    from: "CVE-2019-9518",
    size: Sizes { full: 500_000, ten: 5_000 },
    act: Act::Scene(scene),
    law: Law::says(&[201, 400, 408])
        .or(&[
            Said::StreamReset(http2::ENHANCE_YOUR_CALM),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Closed,
            Said::Open,
        ])
        .many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let post = http2.post(1, REVIEWS, &[]);
        http2.write(&post).await;
        let many = http2::frame(http2::DATA, 0, 1, &[]).repeat(1_000);
        http2.pour(size / 1_000, stage.push(), |_| many.clone()).await;
        http2.write(&http2::frame(http2::DATA, http2::END_STREAM, 1, b"{}")).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
