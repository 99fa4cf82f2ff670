//! A status with tens of thousands of conditions, all of the same type, for a pod that has none.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-status-conditions",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 200 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(&[200, 400, 413, 422, 429]),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { stage.make(Request::post(PODS, JSON, pod("objects-status-conditions", ""))).await })
}

fn request(size: usize) -> Request {
    let all =
        joined(size, ",", |index| format!(r#"{{"type":"t{}","status":"True","reason":"r"}}"#, index / 2));
    let path = format!("{PODS}/objects-status-conditions/status");
    Request::patch(path, MERGE_PATCH, format!(r#"{{"status":{{"conditions":[{all}]}}}}"#))
}
