//! A plugin that never answers: a thousand ask for Secrets at once.

use forebay_hook::kms::{KmsMethods, KmsMischief};

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "encryption-hanging",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 30 },
    beside: Beside::Plugin(KmsMischief::Hangs, KmsMethods::All),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500, 503, 504]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::secrets(stage, 200, size)
}
