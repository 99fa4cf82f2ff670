//! Hundreds of thousands of audiences, none of which is ours.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-review-audiences",
    who: Who::Admin,
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(&[201, 400, 413, 422, 429]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""a{index}""#));
    let body = format!(
        r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{{"token":"a.b.c","audiences":[{all}]}}}}"#
    );
    Request::post("/apis/authentication.k8s.io/v1/tokenreviews", JSON, body)
}
