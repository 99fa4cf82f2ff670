//! Headers without names and values: three bytes each, and some more to whoever keeps them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-empty-names",
    from: "CVE-2019-9516",
    who: Who::Anonymous,
    size: Sizes { full: 20_000, ten: 1_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 431]).or(&[
        Said::StreamReset(http2::PROTOCOL_ERROR),
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
        let names = http2::literal(b"", b"").repeat(5_000);
        http2.write(&http2::frame(http2::HEADERS, http2::END_STREAM, 1, &block)).await;
        http2.pour(size / 5_000, stage.push(), |_| http2::frame(http2::CONTINUATION, 0, 1, &names)).await;
        http2
            .write(&http2::frame(http2::CONTINUATION, http2::END_HEADERS, 1, &http2::literal(b"", b"")))
            .await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
