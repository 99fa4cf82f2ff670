//! A client's certificate, followed by one of sixty kilobytes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-long-certificate",
    who: Who::Anonymous,
    size: Sizes { full: 62_000, ten: 62_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 401]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { show_chain(&stage, vec![vec![0x30; size]]).await })
}
