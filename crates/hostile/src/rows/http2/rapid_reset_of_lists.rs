//! The same by somebody known, of requests that are work.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-rapid-reset-of-lists",
    from: "kubernetes#121197",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 500 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 429])
        .or(&[Said::Away(http2::ENHANCE_YOUR_CALM), Said::Closed, Said::Open])
        .many(30),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        http2.hear(1, Duration::from_millis(50)).await;
        let block = http2.block("GET", "/api/v1/pods", &[]);
        http2
            .pour(size / 50, stage.push(), |round| {
                let one = |index: usize| {
                    let stream = http2::stream(round * 50 + index);
                    let get =
                        http2::frame(http2::HEADERS, http2::END_HEADERS | http2::END_STREAM, stream, &block);
                    [get, http2::reset(stream, http2::CANCEL)].concat()
                };
                (0..50).flat_map(one).collect()
            })
            .await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
