//! A message of half a million fragments, none of which is the last.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "websocket-fragments",
    who: Who::Admin,
    size: Sizes { full: 500_000, ten: 5_000 },
    act: Act::Scene(scene),
    law: Law::says(&[101]).or(&[Said::Closed]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let (mut wire, said) = upgraded(&stage).await?;
        wire.write(&[0x01, 0x81, 0, 0, 0, 0, b'a']).await;
        let fragments = [0x00, 0x81, 0, 0, 0, 0, b'a'].repeat(1_000);
        wire.pour(&fragments, size / 1_000, stage.push()).await;
        Ok(Tally::of(said, ""))
    })
}
