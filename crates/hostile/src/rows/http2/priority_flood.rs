//! Priorities that rearrange a tree of streams, hundreds of thousands of times, for streams that there are
//! none of.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-priority-flood",
    from: "CVE-2019-9513",
    who: Who::Anonymous,
    size: Sizes { full: 300_000, ten: 3_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200])
        .or(&[
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Away(http2::PROTOCOL_ERROR),
            Said::Closed,
            Said::Open,
        ])
        .many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        http2
            .pour(size / 1_000, stage.push(), |round| {
                let one = |index: usize| {
                    let stream = http2::stream(round * 1_000 + index + 1);
                    let on = http2::stream((round * 1_000 + index) / 2) | 1 << 31;
                    http2::frame(http2::PRIORITY, 0, stream, &[&on.to_be_bytes()[..], &[255]].concat())
                };
                (0..1_000).flat_map(one).collect()
            })
            .await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
