//! A hundred thousand pings, of whose answers none is read.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "websocket-ping-flood",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 2_000 },
    act: Act::Scene(scene),
    law: Law::says(&[101]).or(&[Said::Closed]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let (mut wire, said) = upgraded(&stage).await?;
        let ping = [0x89, 0x84, 0, 0, 0, 0, b'p', b'i', b'n', b'g'].repeat(1_000);
        wire.pour(&ping, size / 1_000, stage.push()).await;
        Ok(Tally::of(said, ""))
    })
}
