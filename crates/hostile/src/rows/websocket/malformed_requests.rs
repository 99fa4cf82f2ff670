//! Upgrades without a key, with one of kilobytes, of other versions, and with thousands of subprotocols.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "websocket-malformed-requests",
    from: "RFC 6455, 4.2",
    who: Who::Admin,
    act: Act::Scene(scene),
    law: Law::says(&[101, 400, 403, 426]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        let requests = [
            ("", "13", "a"),
            (&*"k".repeat(20_000), "13", "a"),
            ("dGhlIHNhbXBsZSBub25jZQ==", "99999999999999999999", "a"),
            ("dGhlIHNhbXBsZSBub25jZQ==", "13", &*"a,".repeat(10_000)),
            (
                "\u{7f}\u{7f}",
                "13",
                &*format!("base64url.bearer.authorization.k8s.io.{},a", "A".repeat(20_000)),
            ),
        ];
        for (key, version, protocols) in requests {
            let mut wire = stage.connect().await?;
            let head = format!(
                "GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://a\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: {version}\r\nSec-WebSocket-Protocol: {protocols}\r\n\r\n"
            );
            wire.write(head.as_bytes()).await;
            tally.merge(wire.hear_head().await.into());
        }
        Ok(tally)
    })
}
