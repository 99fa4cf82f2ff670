//! A patch that merges tens of thousands of items into a list by their keys.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-strategic-merge-lists",
    who: Who::Admin,
    size: Sizes { full: 40_000, ten: 400 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(
        async move { stage.make(Request::post(PODS, JSON, pod("patches-strategic-merge-lists", ""))).await },
    )
}

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#"{{"name":"c{index}","image":"i"}}"#));
    let patch = format!(r#"{{"spec":{{"containers":[{all}]}}}}"#);
    Request::patch(format!("{PODS}/patches-strategic-merge-lists"), STRATEGIC_PATCH, patch)
}
