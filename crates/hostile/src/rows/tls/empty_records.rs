//! Records without anything in them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-empty-records",
    who: Who::Anonymous,
    size: Sizes { full: 300_000, ten: 3_000 },
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed, Said::Open]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { send_records(&stage, size, rustls::ContentType::ApplicationData, b"").await })
}
