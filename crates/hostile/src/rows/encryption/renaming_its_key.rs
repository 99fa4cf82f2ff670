//! A plugin that calls its key otherwise in each answer.

use forebay_hook::kms::{KmsMethods, KmsMischief};

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "encryption-renaming-its-key",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 30 },
    beside: Beside::Plugin(KmsMischief::RenamesItsKey, KmsMethods::All),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500, 503, 504]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::secrets(stage, 16, size)
}
