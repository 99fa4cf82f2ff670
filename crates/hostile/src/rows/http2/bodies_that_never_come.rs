//! Requests whose bodies never come, as many as one connection may carry: more than there are seats for
//! writes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-bodies-that-never-come",
    size: Sizes { full: 250, ten: 250 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 408, 429])
        .or(&[
            Said::StreamReset(http2::REFUSED_STREAM),
            Said::StreamReset(http2::CANCEL),
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
        // So many as the server allows, which it says at first.
        http2.hear(1, stage.patience()).await;
        let posts: Vec<u8> =
            (0..size).flat_map(|index| http2.post(http2::stream(index), REVIEWS, &[])).collect();
        http2.write(&posts).await;
        tokio::time::sleep(stage.limit(Duration::from_secs(10))).await;
        Ok(http2.hear(size, stage.patience()).await)
    })
}
