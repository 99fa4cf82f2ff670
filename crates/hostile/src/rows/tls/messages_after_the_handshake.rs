//! A handshake that begins anew once it is over, in TLS 1.3, which has no such thing.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-messages-after-the-handshake",
    who: Who::Anonymous,
    size: Sizes { full: 10_000, ten: 100 },
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        send_records(&stage, size, rustls::ContentType::Handshake, &[1, 0, 0, 4, 3, 3, 0, 0]).await
    })
}
