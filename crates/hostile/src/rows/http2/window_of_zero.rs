//! Connections of a hundred streams each that ask for a long document and have no window to take it.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-window-of-zero",
    from: "CVE-2019-9517",
    size: Sizes { full: 20, ten: 2 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 429])
        .or(&[Said::Away(http2::ENHANCE_YOUR_CALM), Said::Closed, Said::Open])
        .many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut all = stage.open(size, |stage: Stage, _| async move { stage.silent_http2().await }).await;
        for http2 in &mut all {
            http2.begin_with(&[(http2::WINDOW, 0)]).await;
            let streams: Vec<u8> =
                (0..100).flat_map(|index| http2.get(http2::stream(index), "/openapi/v2")).collect();
            http2.write(&streams).await;
        }
        tokio::time::sleep(stage.limit(Duration::from_secs(5))).await;
        let mut tally = Tally::default();
        for http2 in &mut all {
            tally.merge(http2.hear(100, Duration::from_millis(100)).await);
        }
        Ok(tally)
    })
}
