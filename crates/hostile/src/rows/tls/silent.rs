//! Connections on which nothing is said at all.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-silent",
    who: Who::Anonymous,
    size: Sizes { full: 500, ten: 30 },
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let all = stage.open(size, |stage: Stage, _| async move { stage.tcp().await }).await;
        wait_for_ends(&stage, all, Duration::from_secs(15)).await
    })
}
