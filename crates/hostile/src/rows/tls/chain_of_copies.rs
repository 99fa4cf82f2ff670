//! A client's certificate, and a hundred more that look like it: who tries to find a way through them tries
//! many.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-chain-of-copies",
    who: Who::Anonymous,
    size: Sizes { full: 120, ten: 120 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 401]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let leaf = tls::own_chain(Vec::new())?;
        let der = leaf.cert.first().map(|leaf| leaf.to_vec()).unwrap_or_default();
        show_chain(&stage, vec![der; size]).await
    })
}
