//! Hundreds of connections of nobody that have each shown sixty kilobytes of certificates, and stay.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-chains-kept",
    who: Who::Anonymous,
    size: Sizes { full: 500, ten: 50 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Open, Said::Closed]).needs(200).seats(30),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let chain = tls::own_chain(vec![vec![0x30; 60_000].into()])?;
        let config = tls::showing(&stage.tls(tls::HTTP1), tls::HTTP1, Some(chain));
        let mut wires = stage
            .open(size, move |stage: Stage, _| {
                let config = config.clone();
                async move {
                    let io = stage.tls_over(stage.tcp().await?, config).await?;
                    let mut wire = Wire::new(io, stage.host(), None);
                    // A first request, so that the certificates are looked at.
                    wire.ask(&Request::get("/livez")).await;
                    Ok(wire)
                }
            })
            .await;
        let mut tally = let_in(&stage).await;
        let held = count_open(&mut wires).await;
        (0..size).for_each(|index| tally.add(if index < held { Said::Open } else { Said::Closed }));
        Ok(tally)
    })
}
