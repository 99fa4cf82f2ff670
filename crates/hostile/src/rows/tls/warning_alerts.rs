//! Warnings, again and again.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-warning-alerts",
    who: Who::Anonymous,
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[Said::Closed, Said::Open]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    // user_canceled, which TLS 1.3 has kept as a warning.
    Box::pin(async move { send_records(&stage, size, rustls::ContentType::Alert, &[1, 90]).await })
}
