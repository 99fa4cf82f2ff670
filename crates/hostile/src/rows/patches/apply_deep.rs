//! A server-side apply as deep as YAML can make it, where everything unknown is kept.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-apply-deep",
    who: Who::Admin,
    size: Sizes { full: 400_000, ten: 20_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(APPLY_REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let schema = r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#;
    let made = definition("applydeeps", schema, "");
    Box::pin(async move { make_served(&stage, made, "applydeeps").await })
}

fn request(size: usize) -> Request {
    let deep = format!("{}0{}", "{a: ".repeat(size), "}".repeat(size));
    let body = format!("apiVersion: hostile.dev/v1\nkind: Applydeeps\nmetadata: {{name: one}}\na: {deep}\n");
    Request::patch(format!("{}/one?fieldManager=m", custom_path("applydeeps")), APPLY_PATCH, body)
}
