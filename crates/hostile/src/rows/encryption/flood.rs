//! A plugin whose answers are one message of a hundred megabytes.

use forebay_hook::kms::{KmsMethods, KmsMischief};

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "encryption-flood",
    who: Who::Admin,
    size: Sizes { full: 300, ten: 12 },
    beside: Beside::Plugin(KmsMischief::Floods(100 << 20), KmsMethods::All),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500, 503, 504]).together(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        // It is asked again every three seconds.
        let (tally, ()) =
            tokio::join!(super::secrets(stage, 16, size), tokio::time::sleep(Duration::from_secs(5)));
        tally
    })
}
