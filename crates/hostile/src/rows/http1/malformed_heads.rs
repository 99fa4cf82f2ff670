//! Heads that are malformed: folded lines, bare line ends, NULs, blanks before the colon, two hosts, none,
//! and no HTTP.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-malformed-heads",
    from: "RFC 9112, 2.2",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[400, 408, 431, 505]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        let heads: [&[u8]; 12] = [
            b"GET /livez HTTP/1.1\r\nHost: a\r\nX: a\r\n folded\r\n\r\n",
            b"GET /livez HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
            b"GET /livez HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
            b"GET /livez HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n",
            b"GET /livez HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n",
            b"GET /livez HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
            b"GET /livez HTTP/9.9\r\nHost: a\r\n\r\n",
            b"GET  /livez  HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET /li\0vez HTTP/1.1\r\nHost: a\r\n\r\n",
            b"G\xffT /livez HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
            b"{\"apiVersion\":\"v1\"}\r\n\r\n",
        ];
        for head in heads {
            let mut wire = stage.connect().await?;
            wire.write(head).await;
            tally.merge(wire.hear_within(stage.patience()).await.into());
        }
        Ok(tally)
    })
}
