//! Anything but TLS: HTTP in plain text, noise, SSL 2, and alerts.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-noise",
    who: Who::Anonymous,
    size: Sizes { full: 200, ten: 20 },
    act: Act::Scene(scene),
    law: Law::says(&[400]).or(&[Said::Closed]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        use tokio::io::AsyncWriteExt as _;
        let noises: [&[u8]; 5] = [
            b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n",
            &[0xff; 64],
            &[0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10],
            &[0x15, 3, 1, 0, 2, 1, 0],
            &[0x17, 3, 3, 0, 1, 0],
        ];
        let mut tally = Tally::default();
        for noise in noises.iter().cycle().take(size) {
            let mut tcp = stage.tcp().await?;
            if tcp.write_all(noise).await.is_ok() {
                // The end of what is sent: a server that waits for more of it has no more to wait for.
                let _ = tcp.shutdown().await;
            }
            tally.add(end_of(tcp, Duration::from_secs(15)).await);
        }
        Ok(tally)
    })
}
