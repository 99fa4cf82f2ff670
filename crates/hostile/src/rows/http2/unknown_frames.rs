//! Frames of kinds that there are none of, which are to be passed over.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-unknown-frames",
    who: Who::Anonymous,
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Away(http2::ENHANCE_YOUR_CALM), Said::Closed, Said::Open]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let many = http2::frame(200, 0xff, 1, &[0; 8]).repeat(1_000);
        http2.pour(size / 1_000, stage.push(), |_| many.clone()).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
