//! A webhook that authorizes by answers of a hundred megabytes.

use serde_json::json;

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "authorizers-flood",
    size: Sizes { full: 32, ten: 4 },
    beside: Beside::Authorizer(WhenAsked::Last),
    act: Act::Scene(scene),
    law: Law::says(&[500]).together(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::asked(stage, 16, size, json!({ "flood": 100 << 20 }))
}
