//! A hundred heads that are each longer than a head may be.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-header-lists",
    from: "RFC 9113, 10.5.1",
    who: Who::Anonymous,
    size: Sizes { full: 100, ten: 5 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 431])
        .or(&[
            Said::StreamReset(http2::PROTOCOL_ERROR),
            Said::StreamReset(http2::ENHANCE_YOUR_CALM),
            Said::StreamReset(http2::REFUSED_STREAM),
            Said::Away(http2::PROTOCOL_ERROR),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Closed,
        ])
        .many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.http2().await?;
        let more = http2::literal(b"x", &[b'a'; 1_000]).repeat(16);
        let block = http2.block("GET", "/livez", &[]);
        http2
            .pour(size, stage.push(), |index| {
                let stream = http2::stream(index);
                let head = http2::frame(http2::HEADERS, http2::END_STREAM, stream, &block);
                let middle = http2::frame(http2::CONTINUATION, 0, stream, &more).repeat(70);
                [head, middle, http2::frame(http2::CONTINUATION, http2::END_HEADERS, stream, &[])].concat()
            })
            .await;
        Ok(http2.hear(size, stage.patience()).await)
    })
}
