//! Sixty bodies at once of aliases that each expand to megabytes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-yaml-at-once",
    size: Sizes { full: 64, ten: 4 },
    act: Act::Scene(scene),
    law: Law::says(&[201, 400, 413, 429]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let levels = joined(13, "", |level| match level {
            0 => format!("l0: &l0 {}\n", "z".repeat(60)),
            _ => format!("l{level}: &l{level} [*l{0}, *l{0}]\n", level - 1),
        });
        let body = format!("{REVIEW_YAML}{levels}all: [{}]\n", joined(20, ", ", |_| "*l12".to_owned()));
        stage.each(size, size, move |_| Request::review(YAML, body.clone())).await
    })
}
