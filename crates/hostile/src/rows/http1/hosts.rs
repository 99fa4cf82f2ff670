//! Requests without a host, with two, with a malformed one, and with another one in their target.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-hosts",
    from: "RFC 9112, 3.2",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[200, 400]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        let heads = [
            "GET /livez HTTP/1.1\r\n\r\n",
            "GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET /livez HTTP/1.1\r\nHost: a/../b@c\r\n\r\n",
            "GET http://evil.example/livez HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /livez HTTP/1.0\r\n\r\n",
        ];
        for head in heads {
            let mut wire = stage.connect().await?;
            wire.write(head.as_bytes()).await;
            tally.merge(wire.hear_within(stage.patience()).await.into());
        }
        Ok(tally)
    })
}
