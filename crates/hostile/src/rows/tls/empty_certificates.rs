//! A client's certificate, followed by thousands that are empty: five bytes each on the way, and more where
//! they are kept.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-empty-certificates",
    who: Who::Anonymous,
    size: Sizes { full: 12_000, ten: 1_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 401]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { show_chain(&stage, vec![Vec::new(); size]).await })
}
