//! A body of fifty megabytes, sent whatever the server says.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-body-too-large",
    size: Sizes { full: 50_000_000, ten: 4_000_000 },
    act: Act::Scene(scene),
    law: Law::says(&[400, 413]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut wire = stage.connect().await?;
        let bytes = Request::review(JSON, vec![b' '; size]).bytes("a", wire.token);
        Ok(wire.exchange(&bytes).await.into())
    })
}
