//! A header of four kilobytes put into the table, and named ten thousand times by one byte each: 64 MB out of
//! 20 KB.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-header-bomb",
    from: "CVE-2016-6581",
    who: Who::Anonymous,
    size: Sizes { full: 16_000, ten: 1_000 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 431]).or(&[
        Said::StreamReset(http2::PROTOCOL_ERROR),
        Said::StreamReset(http2::ENHANCE_YOUR_CALM),
        Said::Away(http2::PROTOCOL_ERROR),
        Said::Away(http2::ENHANCE_YOUR_CALM),
        Said::Away(http2::COMPRESSION_ERROR),
        Said::Closed,
    ]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let block = http2.block("GET", "/livez", &[]);
        let large = http2::indexed_literal(b"x", &[b'a'; 4_000]);
        http2.write(&http2::frame(http2::HEADERS, http2::END_STREAM, 1, &[block, large].concat())).await;
        http2.write(&http2::frame(http2::CONTINUATION, http2::END_HEADERS, 1, &vec![0xbe; size])).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
