//! A token asked for that would have hundreds of thousands of audiences.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-request-audiences",
    who: Who::Admin,
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(&[201, 400, 413, 422, 429]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""a{index}""#));
    let body = format!(
        r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{{"audiences":[{all}],"expirationSeconds":9223372036854775807}}}}"#
    );
    Request::post("/api/v1/namespaces/hostile/serviceaccounts/default/token", JSON, body)
}
