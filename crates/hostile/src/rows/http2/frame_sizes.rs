//! Frames that are longer than agreed, or of another length than their kind has.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-frame-sizes",
    from: "RFC 9113, 4.2",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[
        Said::StreamReset(http2::FRAME_SIZE_ERROR),
        Said::StreamReset(http2::PROTOCOL_ERROR),
        Said::Away(http2::FRAME_SIZE_ERROR),
        Said::Away(http2::PROTOCOL_ERROR),
        Said::Closed,
    ]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let frames = [
            http2::frame(http2::PING, 0, 0, &[0; 7]),
            http2::frame(http2::RST_STREAM, 0, 1, &[0; 3]),
            http2::frame(http2::SETTINGS, 0, 0, &[0; 5]),
            http2::frame(http2::WINDOW_UPDATE, 0, 0, &[0; 5]),
            http2::frame(http2::SETTINGS, http2::ACK, 0, &[0; 6]),
            http2::frame(http2::HEADERS, http2::END_HEADERS, 1, &vec![0; 1 << 20]),
            http2::frame(99, 0, 0, &vec![0; 1 << 20]),
        ];
        let mut tally = Tally::default();
        for frame in frames {
            let mut http2 = stage.http2().await?;
            http2.pour(1, stage.push(), |_| frame.clone()).await;
            tally.merge(http2.hear(1, stage.patience()).await);
        }
        Ok(tally)
    })
}
