//! Ten megabytes of trailers behind a small body.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-trailers",
    size: Sizes { full: 10_000_000, ten: 200_000 },
    act: Act::Scene(scene),
    law: Law::says(&[201, 400, 413, 431]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let trailers = format!(
            "2\r\n{{}}\r\n0\r\n{}\r\n",
            "X-Trailer: aaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(size / 42)
        );
        Ok(send_chunked(&stage, trailers.as_bytes()).await?.into())
    })
}
