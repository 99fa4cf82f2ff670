//! Requests that the server itself has to take back, as their windows are wrong: it counts them as over while
//! they are worked on.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-resets-by-the-server",
    from: "CVE-2025-8671",
    who: Who::Anonymous,
    size: Sizes { full: 100_000, ten: 2_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 429])
        .or(&[
            Said::StreamReset(http2::PROTOCOL_ERROR),
            Said::StreamReset(http2::FLOW_CONTROL_ERROR),
            Said::StreamReset(http2::REFUSED_STREAM),
            Said::Away(http2::FLOW_CONTROL_ERROR),
            Said::Away(http2::PROTOCOL_ERROR),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Closed,
            Said::Open,
        ])
        .many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        http2.hear(1, Duration::from_millis(50)).await;
        let block = http2.block("GET", "/livez", &[]);
        http2
            .pour(size / 100, stage.push(), |round| {
                let one = |index: usize| {
                    let stream = http2::stream(round * 100 + index);
                    let get =
                        http2::frame(http2::HEADERS, http2::END_HEADERS | http2::END_STREAM, stream, &block);
                    // The window is at its most already.
                    [get, http2::window_update(stream, http2::WINDOW_MAX)].concat()
                };
                (0..100).flat_map(one).collect()
            })
            .await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
