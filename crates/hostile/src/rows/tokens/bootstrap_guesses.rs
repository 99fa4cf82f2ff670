//! Ten thousand guesses at the token of a machine that is to become a node.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-bootstrap-guesses",
    who: Who::Anonymous,
    size: Sizes { full: 10_000, ten: 200 },
    act: Act::Scene(scene),
    law: Law::says(&[401]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        stage
            .each(8, size, |index| {
                let token = format!("{:06}.{index:016}", index % 1_000);
                Request::get("/api").header("Authorization", format!("Bearer {token}"))
            })
            .await
    })
}
