//! A length that is more than what comes, and then the end.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-length-too-long",
    act: Act::Scene(scene),
    law: Law::says(&[400, 408]).or(&[Said::Closed, Said::Open]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut wire = stage.connect().await?;
        let mut bytes = Request::review(JSON, format!("{REVIEW}\"x\":1}}")).bytes("a", wire.token);
        bytes.truncate(bytes.len() - 5);
        wire.write(&bytes).await;
        use tokio::io::AsyncWriteExt as _;
        // The server sees the end of what is sent, and may still answer.
        let _ = wire.io.shutdown().await;
        Ok(wire.hear_within(stage.patience()).await.into())
    })
}
