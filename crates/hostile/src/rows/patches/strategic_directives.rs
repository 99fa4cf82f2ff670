//! Directives by the hundred thousand: what to retain, what to replace, and in what order.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-strategic-directives",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 1_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(&[200, 400, 413, 422, 429]),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(
        async move { stage.make(Request::post(PODS, JSON, pod("patches-strategic-directives", ""))).await },
    )
}

fn request(size: usize) -> Request {
    let keys = joined(size, ",", |index| format!(r#""k{index}""#));
    let items = joined(size, ",", |_| r#"{"$patch":"delete"}"#.to_owned());
    let patch = format!(r#"{{"spec":{{"$retainKeys":[{keys}],"volumes":[{items}]}}}}"#);
    Request::patch(format!("{PODS}/patches-strategic-directives"), STRATEGIC_PATCH, patch)
}
