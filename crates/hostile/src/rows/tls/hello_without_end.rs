//! A first message that says that it is sixteen megabytes, and comes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-hello-without-end",
    who: Who::Anonymous,
    size: Sizes { full: 2_000, ten: 100 },
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        use tokio::io::AsyncWriteExt as _;
        let mut tcp = stage.tcp().await?;
        let first = [&[0x16, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff][..], &[0; (16 << 10) - 4]].concat();
        let more = [&[0x16, 3, 1, 0x40, 0][..], &[0; 16 << 10]].concat();
        let mut is_taken = tcp.write_all(&first).await.is_ok();
        for _ in 0..size {
            if !is_taken {
                break;
            }
            let written = tokio::time::timeout(stage.push(), tcp.write_all(&more)).await;
            is_taken = written.is_ok_and(|written| written.is_ok());
        }
        Ok(Tally::of(end_of(tcp, stage.patience()).await, ""))
    })
}
