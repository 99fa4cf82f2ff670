//! Sixty bodies at once, each as long as a body may be and in the shape that becomes the largest tree.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-large-bodies-at-once",
    from: "kubernetes#107323",
    size: Sizes { full: 64, ten: 4 },
    act: Act::Scene(scene),
    law: Law::says(&[201, 400, 413, 429]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let items = if stage.dose == Dose::Full { 390_000 } else { 3_900 };
        let body = format!("{REVIEW}\"x\":[{}]}}", joined(items, ",", |_| r#"{"a":0}"#.to_owned()));
        stage.each(size, size, move |_| Request::review(JSON, body.clone())).await
    })
}
