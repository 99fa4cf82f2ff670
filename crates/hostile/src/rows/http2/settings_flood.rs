//! Hundreds of thousands of settings, each to be acknowledged to somebody who does not read.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-settings-flood",
    from: "CVE-2019-9515",
    who: Who::Anonymous,
    size: Sizes { full: 300_000, ten: 3_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Away(http2::ENHANCE_YOUR_CALM), Said::Closed, Said::Open]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let many = http2::settings(&[]).repeat(1_000);
        http2.pour(size / 1_000, stage.push(), |_| many.clone()).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
