//! A thousand evictions of the same pod at once.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-evictions",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 50 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[201, 404, 409, 429, 500]).many(10),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { stage.make(Request::post(PODS, JSON, pod("requests-evictions", ""))).await })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let body = r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"requests-evictions"}}"#;
        let path = format!("{PODS}/requests-evictions/eviction");
        stage.each(32, size, move |_| Request::post(path.clone(), JSON, body)).await
    })
}
