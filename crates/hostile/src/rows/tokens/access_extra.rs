//! The same of somebody with a hundred thousand attributes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-access-extra",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(&[201, 400, 413, 422, 429]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""k{index}":["v"]"#));
    let body = format!(
        r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{{"user":"u","extra":{{{all}}},"nonResourceAttributes":{{"path":"/","verb":"get"}}}}}}"#
    );
    Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews", JSON, body)
}
