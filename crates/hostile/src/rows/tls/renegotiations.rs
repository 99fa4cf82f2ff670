//! The same in TLS 1.2, which has: each would be work for the server that costs its client little.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-renegotiations",
    from: "CVE-2011-1473",
    who: Who::Anonymous,
    size: Sizes { full: 10_000, ten: 100 },
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed, Said::Open]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let config = tls::old()?;
        let hello = tls::hello(config.clone(), stage.server_name())?;
        let stream = stage.tls_over(stage.tcp().await?, config).await?;
        let mut records = tls::Records::after(stream)?;
        pour_records(&mut records, &stage, size, rustls::ContentType::Handshake, &hello[5..]).await?;
        Ok(Tally::of(end_of(records.tcp, stage.patience()).await, ""))
    })
}
