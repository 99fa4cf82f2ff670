//! Something else than a preface: HTTP/1.1, which may be answered all the same, noise, and a preface without
//! settings.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-prefaces",
    from: "RFC 9113, 3.4",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[200, 400]).or(&[Said::Away(http2::PROTOCOL_ERROR), Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        let get = stage.http2().await?.get(1, "/livez");
        let begins = [
            b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            vec![0xff; 64],
            [http2::PREFACE, &get].concat(),
        ];
        for begin in begins {
            let mut http2 = stage.silent_http2().await?;
            http2.write(&begin).await;
            tally.merge(http2.hear(1, stage.patience()).await);
        }
        Ok(tally)
    })
}
