//! Windows beyond 2^31, frames shorter than any, and a push that is neither on nor off.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-settings-out-of-range",
    from: "RFC 9113, 6.5.2",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[
        Said::Away(http2::FLOW_CONTROL_ERROR),
        Said::Away(http2::PROTOCOL_ERROR),
        Said::Closed,
    ]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        for change in [(http2::WINDOW, 1 << 31), (http2::FRAME_SIZE, 1), (http2::FRAME_SIZE, 1 << 24), (2, 2)]
        {
            let mut http2 = stage.silent_http2().await?;
            http2.begin_with(&[change]).await;
            tally.merge(http2.hear(1, stage.patience()).await);
        }
        Ok(tally)
    })
}
