//! Settings that change the windows of all streams, of which there are many: each change is work on each
//! stream.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-settings-of-windows",
    who: Who::Anonymous,
    size: Sizes { full: 20_000, ten: 200 },
    act: Act::Scene(scene),
    law: Law::says(&[200])
        .or(&[
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Away(http2::FLOW_CONTROL_ERROR),
            Said::Closed,
            Said::Open,
        ])
        .many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.silent_http2().await?;
        http2.begin_with(&[(http2::WINDOW, 0)]).await;
        let streams: Vec<u8> =
            (0..100).flat_map(|index| http2.get(http2::stream(index), "/version")).collect();
        http2.write(&streams).await;
        http2
            .pour(size / 100, stage.push(), |_| {
                [http2::settings(&[(http2::WINDOW, 1)]), http2::settings(&[(http2::WINDOW, 0)])]
                    .concat()
                    .repeat(50)
            })
            .await;
        Ok(http2.hear(1, stage.patience()).await)
    })
}
