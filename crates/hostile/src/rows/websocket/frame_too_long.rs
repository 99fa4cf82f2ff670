//! A frame that says that it is 2^63 bytes long.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "websocket-frame-too-long",
    who: Who::Admin,
    act: Act::Scene(scene),
    law: Law::says(&[101]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let (mut wire, said) = upgraded(&stage).await?;
        wire.write(&[&[0x82, 0xff][..], &[0x7f, 255, 255, 255, 255, 255, 255, 255], &[0; 4]].concat()).await;
        let bytes = vec![0; 1 << 20];
        wire.pour(&bytes, 16, stage.push()).await;
        Ok(Tally::of(said, ""))
    })
}
