//! What is served, in all forms, from 16 clients at once.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-discovery",
    size: Sizes { full: 2_000, ten: 50 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 304, 406, 429]).many(20),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        stage
            .each(16, size, |index| {
                let form =
                    ["", ";as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", ";as=X;v=v9;g=y"][index % 3];
                Request::get(["/apis", "/api"][index % 2]).header("Accept", format!("application/json{form}"))
            })
            .await
    })
}
