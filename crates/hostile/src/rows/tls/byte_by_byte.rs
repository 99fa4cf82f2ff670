//! A first message in records of one byte each.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-byte-by-byte",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed, Said::Open]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        use tokio::io::AsyncWriteExt as _;
        let hello = tls::hello(stage.tls(tls::HTTP1), stage.server_name())?;
        let mut tcp = stage.tcp().await?;
        let records: Vec<u8> = hello[5..].iter().flat_map(|byte| [0x16, 3, 1, 0, 1, *byte]).collect();
        for record in records.chunks(6) {
            if tcp.write_all(record).await.is_err() {
                break;
            }
        }
        Ok(Tally::of(end_of(tcp, stage.patience()).await, ""))
    })
}
