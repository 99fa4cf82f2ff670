//! Hundreds of watches over WebSocket whose clients go silent: they neither read nor say goodbye.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "websocket-half-open",
    who: Who::Admin,
    size: Sizes { full: 300, ten: 20 },
    act: Act::Scene(scene),
    law: Law::says(&[101]).or(&[Said::Closed]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let wires = stage.open(size, |stage: Stage, _| async move { upgraded(&stage).await }).await;
        tokio::time::sleep(stage.push()).await;
        let mut tally = Tally::default();
        for (_, said) in &wires {
            tally.add(*said);
        }
        Ok(tally)
    })
}
