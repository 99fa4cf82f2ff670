//! Heads that come a byte at a time: two hundred clients, each as slow as can be.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-slow-heads",
    who: Who::Anonymous,
    size: Sizes { full: 200, ten: 20 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 408]).or(&[Said::Closed]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        // Longer than a head may take to come; at size 10 they give up by themselves.
        let wires = stage.open(size, |stage: Stage, _| async move { stage.connect().await }).await;
        let end = stage.limit(Duration::from_secs(40));
        let mut slow = tokio::task::JoinSet::new();
        for wire in wires {
            slow.spawn(dribble(wire, end, stage.dose));
        }
        let mut tally = Tally::default();
        while let Some(Ok(said)) = slow.join_next().await {
            tally.merge(Tally::of(said, ""));
        }
        Ok(tally)
    })
}

async fn dribble(mut wire: Wire, end: Duration, dose: Dose) -> Said {
    let start = std::time::Instant::now();
    let bytes = b"GET /livez HTTP/1.1\r\nHost: a\r\nX: ".iter().chain(std::iter::repeat(&b'a'));
    let every = end / 40;
    for byte in bytes {
        if !wire.write(&[*byte]).await {
            return Said::Closed;
        }
        match wire.hear_within(every).await.said {
            Said::Open if start.elapsed() < end => {}
            // That it is still open says something only where there was time for the limit.
            Said::Open if dose == Dose::Ten => return Said::Closed,
            said => return said,
        }
    }
    Said::Open
}
