//! Definitions, one after the other, each with patterns that are large once they are compiled: what one may
//! hold, many hold.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-storm",
    who: Who::Admin,
    size: Sizes { full: 200, ten: 10 },
    act: Act::Scene(scene),
    law: Law::says(JUDGED).many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        stage
            .each(4, size, |index| {
                let all = joined(20, ",", |at| {
                    format!(r#""p{at}":{{"type":"string","pattern":"^([a-z]{index}x{at}){{1,400}}$"}}"#)
                });
                Request::post(
                    DEFINITIONS,
                    JSON,
                    definition(&format!("storms{index}"), &object_schema(&all), ""),
                )
            })
            .await
    })
}
