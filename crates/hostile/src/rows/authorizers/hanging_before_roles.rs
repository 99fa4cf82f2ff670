//! A webhook that is asked before roles are and never answers any more: the bystander, who is no master,
//! writes by what it answered before.

use serde_json::json;

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "authorizers-hanging-before-roles",
    size: Sizes { full: 1_000, ten: 20 },
    beside: Beside::Authorizer(WhenAsked::First),
    act: Act::Scene(scene),
    law: Law::says(&[429, 500]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::asked(stage, 1_000, size, json!({ "hang": true }))
}
