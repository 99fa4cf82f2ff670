//! A claim with one expression of few bytes whose type doubles thirty times.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-device-types",
    who: Who::Admin,
    // Doublings.
    size: Sizes { full: 30, ten: 12 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let expression = format!("[1]{}.size() == 0", ".map(a,{a:a})".repeat(size));
    let body = format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"objects-device-types"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"c","selectors":[{{"cel":{{"expression":"{expression}"}}}}]}}}}]}}}}}}"#
    );
    Request::post("/apis/resource.k8s.io/v1/namespaces/hostile/resourceclaims", JSON, body)
}
