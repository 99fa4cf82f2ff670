//! A token of tens of kilobytes as a subprotocol, as browsers bring theirs.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "websocket-token-protocol",
    who: Who::Anonymous,
    size: Sizes { full: 45_000, ten: 4_500 },
    act: Act::Request(request),
    law: Law::says(HEADS),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("{CONFIG_MAPS}?watch=1"))
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("Sec-WebSocket-Version", "13")
        .header(
            "Sec-WebSocket-Protocol",
            format!("base64url.bearer.authorization.k8s.io.{},a", "QUJD".repeat(size / 4)),
        )
}
