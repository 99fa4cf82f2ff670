//! Handshakes of which half the first message comes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-half-open",
    from: "kubernetes#22679",
    who: Who::Anonymous,
    size: Sizes { full: 500, ten: 30 },
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        use tokio::io::AsyncWriteExt as _;
        let hello = tls::hello(stage.tls(tls::HTTP1), stage.server_name())?;
        let half = hello[..hello.len() / 2].to_vec();
        let all = stage
            .open(size, move |stage: Stage, _| {
                let half = half.clone();
                async move {
                    let mut tcp = stage.tcp().await?;
                    // One that is not taken is closed, and counted as such.
                    let _ = tcp.write_all(&half).await;
                    Ok(tcp)
                }
            })
            .await;
        wait_for_ends(&stage, all, Duration::from_secs(15)).await
    })
}
