//! A hundred thousand watches of one user who may watch.

use tokio::task::JoinSet;

use crate::prelude::*;

const NAMESPACE: &str = "requests-watches-of-one";
/// On each connection.
const STREAMS: usize = 200;

pub(super) const ROW: Row = Row {
    name: NAMESPACE,
    // Who has no rights watches nothing.
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 600 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    // Who waits for a turn has heard nothing.
    law: Law::says(&[200, 429])
        .or(&[
            Said::StreamReset(http2::REFUSED_STREAM),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Closed,
            Said::Open,
        ])
        .needs(200)
        .many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { namespace_of(&stage, NAMESPACE).await.map(drop) })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let all = stage
            .open(size / STREAMS, |stage: Stage, _index| async move {
                let mut http2 = stage.http2().await?;
                let path = format!("{}?watch=1", config_maps(NAMESPACE));
                let get = |index| http2.get(http2::stream(index), &path);
                let watches: Vec<u8> = (0..STREAMS).flat_map(get).collect();
                http2.write(&watches).await;
                Ok(http2)
            })
            .await;
        let mut hearing = JoinSet::new();
        for mut http2 in all {
            let (patience, open_for) = (stage.patience(), stage.limit(Duration::from_secs(5)));
            hearing.spawn(async move {
                let tally = http2.hear(STREAMS, patience).await;
                // All of them are open at once.
                tokio::time::sleep(open_for).await;
                tally
            });
        }
        Ok(hearing.join_all().await.into_iter().fold(Tally::default(), |mut all, tally| {
            all.merge(tally);
            all
        }))
    })
}
