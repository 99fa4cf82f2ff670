//! A hundred streams of a long document, which are given a window of one byte at a time.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-dribbled-windows",
    from: "CVE-2019-9511",
    size: Sizes { full: 20_000, ten: 200 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 429])
        .or(&[Said::Away(http2::ENHANCE_YOUR_CALM), Said::Closed, Said::Open])
        .many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.silent_http2().await?;
        http2.begin_with(&[(http2::WINDOW, 0)]).await;
        let streams: Vec<u8> =
            (0..100).flat_map(|index| http2.get(http2::stream(index), "/openapi/v2")).collect();
        http2.write(&streams).await;
        http2
            .pour(size / 100, stage.push(), |_| {
                (0..100).flat_map(|index| http2::window_update(http2::stream(index), 1)).collect()
            })
            .await;
        Ok(http2.hear(100, stage.patience()).await)
    })
}
