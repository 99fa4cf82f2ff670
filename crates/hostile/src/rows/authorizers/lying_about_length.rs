//! A webhook that authorizes, says that its answer is longer than it is, and ends.

use serde_json::json;

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "authorizers-lying-about-length",
    size: Sizes { full: 200, ten: 10 },
    beside: Beside::Authorizer(WhenAsked::Last),
    act: Act::Scene(scene),
    law: Law::says(&[500]).many(30),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::asked(stage, 16, size, json!({ "raw": "{", "length": 1 << 20 }))
}
