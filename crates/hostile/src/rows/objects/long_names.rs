//! A name of megabytes, and one to make a name of.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-long-names",
    who: Who::Admin,
    size: Sizes { full: 2_000_000, ten: 20_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let text = "a".repeat(size);
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{text}","generateName":"{}"}}}}"#,
        &text[..size / 3]
    );
    Request::post(CONFIG_MAPS, JSON, body)
}
