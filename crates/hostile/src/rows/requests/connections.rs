//! What listens behind a service, asked for at once by many: thousands of addresses are said to be those of
//! pods that are not there.

use crate::prelude::*;

const ENDPOINTS: &str = "/api/v1/namespaces/hostile/endpoints";
/// For each request of the row.
const ADDRESSES: usize = 40;

pub(super) const ROW: Row = Row {
    name: "requests-connections",
    who: Who::Admin,
    size: Sizes { full: 500, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[503, 429]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    Box::pin(async move {
        let long = "x".repeat(60);
        let address = |index: usize| {
            let ip = format!("10.1.{}.{}", index >> 8, index & 255);
            let target = format!(r#"{{"kind":"Pod","namespace":"hostile","name":"{long}"}}"#);
            format!(r#"{{"ip":"{ip}","targetRef":{target}}}"#)
        };
        let addresses = joined(size * ADDRESSES, ",", address);
        let endpoints = format!(
            r#"{{"apiVersion":"v1","kind":"Endpoints","metadata":{{"name":"nowhere"}},"subsets":[{{"addresses":[{addresses}],"ports":[{{"port":80}}]}}]}}"#
        );
        stage.make(Request::post(ENDPOINTS, JSON, endpoints)).await
    })
}

fn scene(stage: Stage, size: usize) -> Scene {
    let request = |_| Request::get("/api/v1/namespaces/hostile/services/nowhere/proxy/");
    Box::pin(async move { stage.each(64, size, request).await })
}
