//! Chunks of a byte, each with an extension of kilobytes that nobody reads.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-chunk-extensions",
    from: "CVE-2023-39326",
    size: Sizes { full: 3_000, ten: 100 },
    act: Act::Scene(scene),
    law: Law::says(&[201, 400, 413, 431]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let chunk = format!("1;{}\r\n \r\n", "e".repeat(8_000));
        let chunks = [chunk.repeat(size).into_bytes(), b"2\r\n{}\r\n0\r\n\r\n".to_vec()].concat();
        Ok(send_chunked(&stage, &chunks).await?.into())
    })
}
