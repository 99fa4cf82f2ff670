//! Millions of empty lines before a request.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-blank-lines",
    from: "RFC 9112, 2.2",
    who: Who::Anonymous,
    size: Sizes { full: 2_000_000, ten: 20_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 408, 431]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut wire = stage.connect().await?;
        let bytes = [b"\r\n".repeat(size / 2), b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()].concat();
        Ok(wire.exchange(&bytes).await.into())
    })
}
