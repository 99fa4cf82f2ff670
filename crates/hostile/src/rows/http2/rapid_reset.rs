//! A hundred thousand requests, each taken back as soon as it is sent: no limit on streams that are open
//! counts them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-rapid-reset",
    from: "CVE-2023-44487",
    who: Who::Anonymous,
    size: Sizes { full: 100_000, ten: 2_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 429])
        .or(&[Said::Away(http2::ENHANCE_YOUR_CALM), Said::Closed, Said::Open])
        .many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        http2.hear(1, Duration::from_millis(50)).await;
        let block = http2.block("GET", "/livez", &[]);
        http2.pour(size / 100, stage.push(), |round| burst(round, &block)).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}

fn burst(round: usize, block: &[u8]) -> Vec<u8> {
    let one = |index: usize| {
        let stream = http2::stream(round * 100 + index);
        let get = http2::frame(http2::HEADERS, http2::END_HEADERS | http2::END_STREAM, stream, block);
        [get, http2::reset(stream, http2::CANCEL)].concat()
    };
    (0..100).flat_map(one).collect()
}
