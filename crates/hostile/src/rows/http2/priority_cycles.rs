//! Streams that depend on themselves, and on each other in a circle.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-priority-cycles",
    from: "RFC 9113, 5.3",
    who: Who::Anonymous,
    size: Sizes { full: 1_000, ten: 100 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[
        Said::StreamReset(http2::PROTOCOL_ERROR),
        Said::Away(http2::PROTOCOL_ERROR),
        Said::Closed,
        Said::Open,
    ]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let depends = |stream: u32, on: u32| {
            http2::frame(http2::PRIORITY, 0, stream, &[&on.to_be_bytes()[..], &[1]].concat())
        };
        let get = http2.get(1, "/livez");
        http2.write(&get).await;
        http2.pour(size, stage.push(), |_| [depends(3, 5), depends(5, 7), depends(7, 3)].concat()).await;
        http2.write(&depends(9, 9)).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
