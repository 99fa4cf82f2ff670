//! Goodbyes of clients that stay: with an error, with megabytes of reasons, and with requests behind them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-goaway-by-the-client",
    from: "CVE-2022-27664",
    who: Who::Anonymous,
    size: Sizes { full: 100, ten: 10 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Closed, Said::Open]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        for index in 0..size {
            let mut http2 = stage.http2().await?;
            let reason = [&[0, 0, 0, 0, 0, 0, 0, (index % 14) as u8][..], &vec![b'a'; 16_000]].concat();
            let get = http2.get(1, "/livez");
            http2.write(&[http2::frame(http2::GOAWAY, 0, 0, &reason), get].concat()).await;
            tally.merge(http2.hear(1, Duration::from_millis(200)).await);
        }
        Ok(tally)
    })
}
