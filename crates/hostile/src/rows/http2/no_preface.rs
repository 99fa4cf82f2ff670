//! Connections that are agreed to be HTTP/2, on which nothing is said.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-no-preface",
    who: Who::Anonymous,
    size: Sizes { full: 200, ten: 20 },
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let all = stage.open(size, |stage: Stage, _| async move { stage.silent_http2().await }).await;
        let limit = stage.limit(Duration::from_secs(40));
        let mut waiting = tokio::task::JoinSet::new();
        for mut http2 in all {
            waiting.spawn(async move { tokio::time::timeout(limit, http2.answer_pings()).await.is_ok() });
        }
        let mut tally = Tally::default();
        while let Some(Ok(is_closed)) = waiting.join_next().await {
            // At size 10 there is no time for the server's limit.
            tally.add(if is_closed || stage.dose == Dose::Ten { Said::Closed } else { Said::Open });
        }
        Ok(tally)
    })
}
