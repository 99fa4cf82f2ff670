//! More connections of nobody than the memory limit has seats for: they are held to those, and somebody known
//! is let in still.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-all-seats-taken",
    who: Who::Anonymous,
    size: Sizes { full: 600, ten: 300 },
    memory: MemoryLimit::Least,
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Open, Said::Closed]).needs(200).open_at_most(256).seats(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut wires = stage.open(size, |stage: Stage, _| async move { stage.connect().await }).await;
        let mut tally = let_in(&stage).await;
        let held = count_open(&mut wires).await;
        for index in 0..wires.len() {
            tally.add(if index < held { Said::Open } else { Said::Closed });
        }
        Ok(tally)
    })
}
