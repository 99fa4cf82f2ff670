//! What somebody in hundreds of thousands of groups may do.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-access-groups",
    who: Who::Admin,
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(&[201, 400, 413, 422, 429]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""g{index}""#));
    let body = format!(
        r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{{"user":"u","groups":[{all}],"nonResourceAttributes":{{"path":"/","verb":"get"}}}}}}"#
    );
    Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews", JSON, body)
}
