//! Ten thousand requests in one go, whose answers nobody reads before all of them are sent.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-pipelined",
    who: Who::Anonymous,
    size: Sizes { full: 10_000, ten: 500 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Closed]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut wire = stage.connect().await?;
        let requests = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100);
        // The server stops reading once its answers are not taken; what it has read it answers.
        wire.pour(&requests, size / 100, stage.push()).await;
        Ok(wire.hear_all(stage.patience(), stage.push()).await)
    })
}
