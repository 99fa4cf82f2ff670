//! The documents of the whole API, in all their forms, from 16 clients at once.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-openapi",
    size: Sizes { full: 300, ten: 6 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 304, 406, 429]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        stage
            .each(16, size, |index| {
                let path = ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"]
                    [index % 4];
                let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
                let accept = ["application/json", protobuf, "*/*"][index % 3];
                let coding = ["identity", "gzip"][index / 4 % 2];
                Request::get(path).header("Accept", accept).header("Accept-Encoding", coding)
            })
            .await
    })
}
