//! A token of megabytes, to be looked at.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-review-of-three-mib",
    who: Who::Admin,
    size: Sizes { full: 2_900_000, ten: 29_000 },
    act: Act::Request(request),
    law: Law::says(&[201, 400, 413, 422, 429]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let body = format!(
        r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{{"token":"{}.a.b"}}}}"#,
        "a".repeat(size)
    );
    Request::post("/apis/authentication.k8s.io/v1/tokenreviews", JSON, body)
}
