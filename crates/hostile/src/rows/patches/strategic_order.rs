//! An order for a hundred thousand containers, of which one is there.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-strategic-order",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 1_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(&[200, 400, 413, 422, 429]),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { stage.make(Request::post(PODS, JSON, pod("patches-strategic-order", ""))).await })
}

fn request(size: usize) -> Request {
    let order = joined(size, ",", |index| format!(r#"{{"name":"c{index}"}}"#));
    let patch = format!(
        r#"{{"spec":{{"$setElementOrder/containers":[{order},{{"name":"c"}}],"containers":[{{"name":"c","image":"j"}}]}}}}"#
    );
    Request::patch(format!("{PODS}/patches-strategic-order"), STRATEGIC_PATCH, patch)
}
