//! A server-side apply of a list whose tens of thousands of items are told apart by keys, over one that has
//! them the other way around.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-apply-keyed-lists",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 200 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(APPLY_JUDGED),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    let ports = joined(size, ",", |index| format!(r#"{{"containerPort":{}}}"#, index % 65_535 + 1));
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"patches-apply-keyed-lists"}},"spec":{{"containers":[{{"name":"c","image":"i","ports":[{ports}]}}]}}}}"#
    );
    Box::pin(async move { stage.make(Request::post(PODS, JSON, body)).await })
}

fn request(size: usize) -> Request {
    let ports = joined(size, "", |index| {
        format!("    - {{containerPort: {}, protocol: TCP}}\n", (size - 1 - index) % 65_535 + 1)
    });
    let body = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: patches-apply-keyed-lists}}\nspec:\n  containers:\n  - name: c\n    image: i\n    ports:\n{ports}"
    );
    Request::patch(format!("{PODS}/patches-apply-keyed-lists?fieldManager=m&force=true"), APPLY_PATCH, body)
}
