//! A plugin that says that it is well, encrypts, and never answers what it is to decrypt.

use forebay_hook::kms::{KmsMethods, KmsMischief};

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "encryption-hanging-at-decryption",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 30 },
    beside: Beside::Plugin(KmsMischief::Hangs, KmsMethods::Decrypt),
    act: Act::Scene(scene),
    law: Law::says(&[201, 429, 500, 503, 504]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::secrets(stage, 200, size)
}
