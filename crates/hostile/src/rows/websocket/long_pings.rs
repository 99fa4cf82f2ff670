//! Pings of sixty kilobytes, each of which would have to be sent back.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "websocket-long-pings",
    from: "RFC 6455, 5.5",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 50 },
    act: Act::Scene(scene),
    law: Law::says(&[101]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let (mut wire, said) = upgraded(&stage).await?;
        let ping = [&[0x89, 0xfe, 0xff, 0xff][..], &[0; 4], &vec![b'p'; 0xffff]].concat();
        wire.pour(&ping, size, stage.push()).await;
        Ok(Tally::of(said, ""))
    })
}
