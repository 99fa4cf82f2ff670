//! A webhook that converts nothing, while many ask for all of it again and again.

use serde_json::json;

use crate::converted::ConvertedTabs;
use crate::prelude::*;

const NAME: &str = "conversions-refusing";
const TABS: ConvertedTabs = ConvertedTabs { row: NAME };

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[500, 504]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { TABS.start(&stage, 10, json!({ "convert": "refuse" })).await })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let read = |index: usize| if index.is_multiple_of(2) { TABS.list() } else { TABS.get(index % 10) };
        stage.each(64, size, read).await
    })
}
