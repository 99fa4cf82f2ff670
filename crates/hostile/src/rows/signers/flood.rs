//! A signer whose answers are one message of a hundred megabytes.

use forebay_hook::signer::SignerMischief;

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "signers-flood",
    who: Who::Admin,
    size: Sizes { full: 300, ten: 12 },
    beside: Beside::Signer(SignerMischief::Floods(100 << 20)),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500, 504]).together(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::tokens(stage, 16, size)
}
