//! A body in half a million chunks of a byte each.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-chunks-of-a-byte",
    from: "CVE-2023-39326",
    size: Sizes { full: 500_000, ten: 5_000 },
    act: Act::Scene(scene),
    law: Law::says(&[201, 400, 413]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let chunks = [b"1\r\n \r\n".repeat(size), b"2\r\n{}\r\n0\r\n\r\n".to_vec()].concat();
        Ok(send_chunked(&stage, &chunks).await?.into())
    })
}
