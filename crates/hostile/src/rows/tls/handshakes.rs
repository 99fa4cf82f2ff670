//! A thousand whole handshakes, each of which is a signature for the server, by clients that leave at once.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-handshakes",
    who: Who::Anonymous,
    size: Sizes { full: 1_000, ten: 50 },
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed, Said::Open]).many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        for _ in 0..size.div_ceil(50) {
            let wires = stage.open(50, |stage: Stage, _| async move { stage.connect().await }).await;
            (0..wires.len()).for_each(|_| tally.add(Said::Open));
        }
        Ok(tally)
    })
}
