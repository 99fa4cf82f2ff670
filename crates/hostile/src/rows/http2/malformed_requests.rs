//! Names in capitals, pseudo-headers twice, unknown, missing and behind others, and headers of a connection:
//! all must be refused.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-malformed-requests",
    from: "RFC 9113, 8.3",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[400]).or(&[
        Said::StreamReset(http2::PROTOCOL_ERROR),
        Said::Away(http2::PROTOCOL_ERROR),
        Said::Closed,
    ]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let path: &[(&str, &str)] = &[(":path", "/livez")];
        let blocks: [&[(&str, &str)]; 11] = [
            &[("X-Upper", "a")],
            path,
            &[(":unknown", "a")],
            &[("a", "a"), (":method", "GET")],
            &[("connection", "close")],
            &[("transfer-encoding", "chunked")],
            &[("te", "gzip")],
            &[("x", "a\r\nb: c")],
            &[("x\0", "a")],
            &[("upgrade", "websocket")],
            &[(":status", "200")],
        ];
        let mut tally = Tally::default();
        for extra in blocks {
            let mut http2 = stage.http2().await?;
            let block = http2.block("GET", "/livez", extra);
            http2
                .write(&http2::frame(http2::HEADERS, http2::END_HEADERS | http2::END_STREAM, 1, &block))
                .await;
            tally.merge(http2.hear(1, stage.patience()).await);
        }
        Ok(tally)
    })
}
