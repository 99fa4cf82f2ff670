//! A signer that never answers: a thousand tokens are asked for at once.

use forebay_hook::signer::SignerMischief;

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "signers-hanging",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 30 },
    beside: Beside::Signer(SignerMischief::Hangs),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500, 504]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::tokens(stage, 200, size)
}
