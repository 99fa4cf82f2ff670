//! A hundred thousand texts to be taken out of a list.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-strategic-deletes",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 1_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(&[200, 400, 413, 422, 429]),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let all = joined(500, ",", |index| format!(r#""x.dev/{index}""#));
    let made = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"patches-strategic-deletes","finalizers":[{all}]}}}}"#
    );
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""y.dev/{index}""#));
    let patch = format!(r#"{{"metadata":{{"$deleteFromPrimitiveList/finalizers":[{all}]}}}}"#);
    Request::patch(format!("{CONFIG_MAPS}/patches-strategic-deletes"), STRATEGIC_PATCH, patch)
}
