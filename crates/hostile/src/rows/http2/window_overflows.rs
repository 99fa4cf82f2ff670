//! Windows of more than 2^31, of streams and of connections, and additions of nothing.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-window-overflows",
    from: "RFC 9113, 6.9.1",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[
        Said::StreamReset(http2::FLOW_CONTROL_ERROR),
        Said::StreamReset(http2::PROTOCOL_ERROR),
        Said::Away(http2::FLOW_CONTROL_ERROR),
        Said::Away(http2::PROTOCOL_ERROR),
        Said::Closed,
    ]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        for (stream, more) in [(0, http2::WINDOW_MAX), (1, http2::WINDOW_MAX), (0, 0), (1, 0)] {
            let mut http2 = stage.http2().await?;
            let get = http2.get(1, "/livez");
            http2.write(&[get, http2::window_update(stream, more)].concat()).await;
            tally.merge(http2.hear(1, stage.patience()).await);
        }
        Ok(tally)
    })
}
