//! A webhook that authorizes and never answers, asked by a thousand at once.

use serde_json::json;

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "authorizers-hanging",
    size: Sizes { full: 1_000, ten: 20 },
    beside: Beside::Authorizer(WhenAsked::Last),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::asked(stage, 1_000, size, json!({ "hang": true }))
}
