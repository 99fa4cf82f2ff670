//! LISTs of large objects on one connection, which has no window to take them, while all that is answered is
//! noted: a copy of each would wait for its reader.

use crate::prelude::*;

const NAME: &str = "audit-slow-lists";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 100, ten: 20 },
    beside: Beside::AuditedWhole,
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::lists_that_nobody_takes().needs(200).many(20),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    Box::pin(async move {
        let path = namespace_of(&stage, NAME).await?;
        // 20 MB of them at full size, of which a hundred copies are more than the server may have.
        let data = format!(r#""data":{{"k":"{}"}}"#, "x".repeat(size * 9_000));
        for index in 0..22 {
            stage.make(Request::post(path.clone(), JSON, config_map(&format!("c{index}"), &data))).await?;
        }
        Ok(())
    })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { lists_that_nobody_takes(&stage, &config_maps(NAME), size).await })
}
