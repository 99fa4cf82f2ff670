//! A Secret of nearly three megabytes, in base64.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-secret-of-three-mib",
    who: Who::Admin,
    size: Sizes { full: 2_900_000, ten: 29_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"objects-secret"}},"data":{{"k":"{}"}}}}"#,
        "abcd".repeat(size / 4)
    );
    Request::post("/api/v1/namespaces/hostile/secrets", JSON, body)
}
