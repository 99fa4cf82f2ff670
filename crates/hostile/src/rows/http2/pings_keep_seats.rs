//! Connections that only answer pings, more than there are seats for: they do not keep somebody known out.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-pings-keep-seats",
    who: Who::Anonymous,
    size: Sizes { full: 600, ten: 300 },
    memory: MemoryLimit::Least,
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Open, Said::Closed]).needs(200).open_at_most(256).seats(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let all = stage.open(size, |stage: Stage, _| async move { stage.http2().await }).await;
        let mut answering = tokio::task::JoinSet::new();
        for mut http2 in all {
            answering.spawn(async move { http2.answer_pings().await });
        }
        // Those that the server has ended are over by now.
        tokio::time::sleep(stage.push()).await;
        let mut tally = let_in(&stage).await;
        while answering.try_join_next().is_some() {}
        let held = answering.len();
        (0..size).for_each(|index| tally.add(if index < held { Said::Open } else { Said::Closed }));
        Ok(tally)
    })
}
