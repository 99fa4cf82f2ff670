//! Thousands of requests at once whose bodies never come, on one connection.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-streams-beyond-the-limit",
    from: "RFC 9113, 5.1.2",
    size: Sizes { full: 2_000, ten: 500 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 408, 429])
        .or(&[
            Said::StreamReset(http2::REFUSED_STREAM),
            Said::StreamReset(http2::PROTOCOL_ERROR),
            Said::StreamReset(http2::ENHANCE_YOUR_CALM),
            Said::Away(http2::PROTOCOL_ERROR),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Closed,
            Said::Open,
        ])
        .many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let posts: Vec<u8> =
            (0..size).flat_map(|index| http2.post(http2::stream(index), REVIEWS, &[])).collect();
        http2.pour(1, stage.push(), |_| posts.clone()).await;
        Ok(http2.hear(size, stage.patience()).await)
    })
}
