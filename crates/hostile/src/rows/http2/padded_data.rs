//! A body of frames that are nothing but padding: it takes its window, and nobody gives it back by reading.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-padded-data",
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Scene(scene),
    law: Law::says(&[201, 400, 408, 413])
        .or(&[
            Said::StreamReset(http2::FLOW_CONTROL_ERROR),
            Said::StreamReset(http2::ENHANCE_YOUR_CALM),
            Said::Away(http2::FLOW_CONTROL_ERROR),
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
        let padding = [&[255][..], &[0; 255]].concat();
        let many = http2::frame(http2::DATA, http2::PADDED, 1, &padding).repeat(100);
        http2.pour(size / 100, stage.push(), |_| many.clone()).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
