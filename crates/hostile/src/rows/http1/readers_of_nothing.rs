//! Hundreds of clients that ask for the longest document there is, and read nothing of it.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-readers-of-nothing",
    size: Sizes { full: 300, ten: 20 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 429]).or(&[Said::Closed, Said::Open]).many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut wires = stage.open(size, |stage: Stage, _| async move { stage.connect_narrow().await }).await;
        let request = Request::get("/openapi/v2");
        for wire in &mut wires {
            let bytes = request.bytes("a", wire.token);
            wire.write(&bytes).await;
        }
        tokio::time::sleep(stage.limit(Duration::from_secs(8))).await;
        let mut tally = Tally::default();
        for wire in &mut wires {
            let heard = tokio::time::timeout(Duration::from_millis(10), wire.hear_head()).await;
            tally.add(heard.map_or(Said::Open, |heard| heard.said));
        }
        Ok(tally)
    })
}
