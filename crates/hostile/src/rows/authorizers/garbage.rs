//! A webhook that authorizes, and answers what is no review.

use serde_json::json;

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "authorizers-garbage",
    size: Sizes { full: 2_000, ten: 20 },
    beside: Beside::Authorizer(WhenAsked::Last),
    act: Act::Scene(scene),
    law: Law::says(&[500]).many(30),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    super::asked(stage, 16, size, json!({ "raw": "<html>allowed: true</html>" }))
}
