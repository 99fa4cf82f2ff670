//! May I list what has none of tens of thousands of labels?

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-access-selectors",
    size: Sizes { full: 50_000, ten: 500 },
    act: Act::Request(request),
    law: Law::says(&[201, 400, 413, 422, 429]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#"{{"key":"k{index}","operator":"DoesNotExist"}}"#));
    let body = format!(
        r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{{"resourceAttributes":{{"verb":"list","resource":"pods","labelSelector":{{"requirements":[{all}]}}}}}}}}"#
    );
    Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", JSON, body)
}
