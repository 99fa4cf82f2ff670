//! Chunks of 2^64 bytes and more, of negative and of no sizes, and without the line's end behind them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-chunk-sizes",
    from: "RFC 9112, 7.1",
    act: Act::Scene(scene),
    law: Law::says(&[400, 413]).or(&[Said::Closed, Said::Open]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        let sizes = [
            "ffffffffffffffff\r\n{}\r\n",
            "10000000000000002\r\n{}\r\n",
            "-2\r\n{}\r\n",
            "0x2\r\n{}\r\n",
            "\r\n{}\r\n",
            "2\n{}\r\n",
            "2\r\n{}XX0\r\n\r\n",
            "7fffffffffffffff\r\n{}\r\n0\r\n\r\n",
        ];
        for size in sizes {
            let heard = tokio::time::timeout(stage.patience(), send_chunked(&stage, size.as_bytes())).await;
            match heard {
                Ok(heard) => tally.merge(heard?.into()),
                Err(_) => tally.add(Said::Open),
            }
        }
        Ok(tally)
    })
}
