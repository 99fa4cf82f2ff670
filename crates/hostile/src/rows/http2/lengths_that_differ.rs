//! A `content-length` that is more, or less, than what comes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-lengths-that-differ",
    from: "RFC 9113, 8.1.1",
    act: Act::Scene(scene),
    law: Law::says(&[400, 408]).or(&[
        Said::StreamReset(http2::PROTOCOL_ERROR),
        Said::Away(http2::PROTOCOL_ERROR),
        Said::Closed,
    ]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        for length in ["1", "3", "-2", "99999999999999999999"] {
            let mut http2 = stage.http2().await?;
            let post = http2.post(1, REVIEWS, &[("content-length", length)]);
            http2.write(&[post, http2::frame(http2::DATA, http2::END_STREAM, 1, b"{}")].concat()).await;
            tally.merge(http2.hear(1, stage.patience()).await);
        }
        Ok(tally)
    })
}
