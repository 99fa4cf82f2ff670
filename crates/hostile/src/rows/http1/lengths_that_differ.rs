//! Lengths that are two, negative, signed, lists, hexadecimal, or beyond 2^64: one that is guessed lets a
//! request hide in another.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-lengths-that-differ",
    from: "RFC 9112, 6.3",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[400, 408]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        let lengths =
            ["5\r\nContent-Length: 6", "-1", "+5", "5, 6", "0x5", "5 5", "18446744073709551621", "5_0", ""];
        for length in lengths {
            let mut wire = stage.connect().await?;
            let request = format!("POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\nabcde");
            wire.write(request.as_bytes()).await;
            tally.merge(wire.hear_within(stage.patience()).await.into());
        }
        Ok(tally)
    })
}
