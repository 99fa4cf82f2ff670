//! CONNECT, TRACE, OPTIONS of everything, and the preface of HTTP/2 where HTTP/1.1 was agreed on.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-odd-methods",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 401, 403, 404, 405, 501]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        let heads = [
            "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: a\r\n\r\n",
            "TRACE /livez HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        ];
        for head in heads {
            let mut wire = stage.connect().await?;
            wire.write(head.as_bytes()).await;
            tally.merge(wire.hear_within(stage.patience()).await.into());
        }
        Ok(tally)
    })
}
