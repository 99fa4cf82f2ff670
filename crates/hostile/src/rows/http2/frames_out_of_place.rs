//! Frames on streams that are idle, over, the server's own or none, and others without what has to come
//! before them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-frames-out-of-place",
    from: "RFC 9113, 5.1",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[
        Said::StreamReset(http2::STREAM_CLOSED),
        Said::StreamReset(http2::PROTOCOL_ERROR),
        Said::Away(http2::PROTOCOL_ERROR),
        Said::Away(http2::STREAM_CLOSED),
        Said::Closed,
        Said::Open,
    ]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let get = stage.http2().await?.get(1, "/livez");
        let even = stage.http2().await?.get(2, "/livez");
        let frames = [
            http2::frame(http2::DATA, 0, 1, b"a"),
            http2::reset(1, 0),
            http2::window_update(5, 1),
            even,
            http2::frame(http2::DATA, 0, 0, b"a"),
            http2::frame(http2::CONTINUATION, http2::END_HEADERS, 1, b""),
            http2::frame(http2::PUSH_PROMISE, http2::END_HEADERS, 1, &[0, 0, 0, 2]),
            http2::frame(http2::SETTINGS, 0, 1, &[]),
            http2::frame(http2::GOAWAY, 0, 1, &[0; 8]),
            [get.clone(), http2::frame(http2::DATA, 0, 1, b"a")].concat(),
            [get.clone(), get].concat(),
            http2::frame(http2::SETTINGS, http2::ACK, 0, &[]),
        ];
        let mut tally = Tally::default();
        for frame in frames {
            let mut http2 = stage.http2().await?;
            http2.write(&frame).await;
            tally.merge(http2.hear(1, stage.patience()).await);
        }
        Ok(tally)
    })
}
