//! A hundred bodies of nearly three megabytes, of which all but the last byte comes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-slow-large-bodies",
    size: Sizes { full: 100, ten: 10 },
    act: Act::Scene(scene),
    law: Law::says(&[201, 400, 408, 413, 429]).or(&[Said::Closed, Said::Open]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let length = if stage.dose == Dose::Full { 3_000_000 } else { 300_000 };
        let body = [format!("{REVIEW}\"x\":\"").into_bytes(), vec![b'a'; length]].concat();
        let mut slow = tokio::task::JoinSet::new();
        let patience = stage.limit(Duration::from_secs(10));
        for mut wire in stage.open(size, |stage: Stage, _| async move { stage.connect().await }).await {
            let whole = Request::review(JSON, body.clone()).bytes("a", wire.token);
            slow.spawn(async move {
                let unfinished = &whole[..whole.len() - 1];
                // It waits for room, and does not take all of it before there is some.
                let sent = tokio::time::timeout(patience, wire.exchange(unfinished)).await;
                sent.map_or(Said::Open, |heard| heard.said)
            });
        }
        let mut tally = Tally::default();
        while let Some(Ok(said)) = slow.join_next().await {
            tally.add(said);
        }
        Ok(tally)
    })
}
