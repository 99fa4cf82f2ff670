//! A head of eighty megabytes, in frames that go on and on: who reads on past the limit, to keep the table
//! right, reads for ever.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-continuations",
    from: "CVE-2023-45288",
    who: Who::Anonymous,
    size: Sizes { full: 5_000, ten: 100 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 431])
        .or(&[
            Said::StreamReset(http2::PROTOCOL_ERROR),
            Said::StreamReset(http2::ENHANCE_YOUR_CALM),
            Said::Away(http2::PROTOCOL_ERROR),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Away(http2::COMPRESSION_ERROR),
            Said::Closed,
        ])
        .many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let block = http2.block("GET", "/livez", &[]);
        http2.write(&http2::frame(http2::HEADERS, http2::END_STREAM, 1, &block)).await;
        let more = http2::literal(b"x", &[b'a'; 1_000]).repeat(16);
        http2.pour(size, stage.push(), |_| http2::frame(http2::CONTINUATION, 0, 1, &more)).await;
        http2.write(&http2::frame(http2::CONTINUATION, http2::END_HEADERS, 1, &[])).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
