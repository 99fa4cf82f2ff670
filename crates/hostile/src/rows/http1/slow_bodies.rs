//! Two hundred POSTs whose bodies never come: as many as there are seats for writes. The bystander's own
//! writes go on.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-slow-bodies",
    size: Sizes { full: 210, ten: 210 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 408, 429]).or(&[Said::Closed, Said::Open]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let head = |wire: &Wire| {
            let token = wire.token.unwrap_or_default();
            format!(
                "POST {REVIEWS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Type: {JSON}\r\nContent-Length: 1000\r\n\r\n{{"
            )
        };
        let mut wires = stage.open(size, |stage: Stage, _| async move { stage.connect().await }).await;
        for wire in &mut wires {
            let head = head(wire);
            wire.write(head.as_bytes()).await;
        }
        tokio::time::sleep(stage.limit(Duration::from_secs(10))).await;
        let mut tally = Tally::default();
        for wire in &mut wires {
            tally.merge(wire.hear_within(Duration::from_millis(1)).await.into());
        }
        Ok(tally)
    })
}
