//! A megabyte of requests behind a watch that never ends.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-pipelined-into-a-watch",
    who: Who::Admin,
    size: Sizes { full: 1_000_000, ten: 20_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut wire = stage.connect().await?;
        wire.write(format!("GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await;
        let heard = wire.hear_head().await;
        let requests = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100);
        wire.pour(&requests, size / requests.len(), stage.push()).await;
        Ok(heard.into())
    })
}
