//! Clients that wait to be told to go on, and then do not; and others that expect what there is none of.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-expectations",
    size: Sizes { full: 200, ten: 20 },
    act: Act::Scene(scene),
    law: Law::says(&[201, 400, 408, 413, 417, 429]).or(&[Said::Closed, Said::Open]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut wires = stage.open(size, |stage: Stage, _| async move { stage.connect().await }).await;
        for (index, wire) in wires.iter_mut().enumerate() {
            let token = wire.token.unwrap_or_default();
            let expected = if index.is_multiple_of(2) { "100-continue" } else { "a-banana" };
            let head = format!(
                "POST {REVIEWS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nExpect: {expected}\r\nContent-Type: {JSON}\r\nContent-Length: 3000000\r\n\r\n"
            );
            wire.write(head.as_bytes()).await;
        }
        tokio::time::sleep(stage.push()).await;
        let mut tally = Tally::default();
        for wire in &mut wires {
            tally.merge(wire.hear_within(Duration::from_millis(5)).await.into());
        }
        Ok(tally)
    })
}
