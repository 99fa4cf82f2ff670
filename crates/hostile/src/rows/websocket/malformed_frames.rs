//! Frames without a mask, with reserved bits, of reserved kinds, and goodbyes of one byte.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "websocket-malformed-frames",
    from: "RFC 6455, 5.2",
    who: Who::Admin,
    act: Act::Scene(scene),
    law: Law::says(&[101]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        let frames: [&[u8]; 5] = [
            &[0x81, 0x01, b'a'],
            &[0xf1, 0x81, 0, 0, 0, 0, b'a'],
            &[0x83, 0x81, 0, 0, 0, 0, b'a'],
            &[0x88, 0x81, 0, 0, 0, 0, 3],
            &[0x09, 0x80, 0, 0, 0, 0],
        ];
        for frame in frames {
            let (mut wire, said) = upgraded(&stage).await?;
            wire.write(frame).await;
            wire.end_within(stage.push()).await;
            tally.merge(Tally::of(said, ""));
        }
        Ok(tally)
    })
}
