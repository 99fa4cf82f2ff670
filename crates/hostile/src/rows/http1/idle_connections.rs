//! Two thousand connections of nobody that say nothing once their handshakes are over, and somebody known who
//! comes after them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-idle-connections",
    from: "kubernetes#22679",
    who: Who::Anonymous,
    size: Sizes { full: 2_000, ten: 300 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Open]).needs(200).seats(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let wires = stage.open(size, |stage: Stage, _| async move { stage.connect().await }).await;
        let mut tally: Tally = stage.of(Who::Admin).ask(&Request::get(CONFIG_MAPS)).await?.into();
        for _ in &wires {
            tally.add(Said::Open);
        }
        Ok(tally)
    })
}
