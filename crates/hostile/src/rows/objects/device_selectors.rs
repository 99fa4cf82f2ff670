//! A claim with thousands of expressions, each of which is a thousand parts.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-device-selectors",
    who: Who::Admin,
    // Requests, with eight alternatives of 32 selectors each.
    size: Sizes { full: 32, ten: 2 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let expression = format!("optional.of(1){}.hasValue()", ".optMap(v,v)".repeat(8));
    let selectors = joined(32, ",", |_| format!(r#"{{"cel":{{"expression":"{expression}"}}}}"#));
    let alternatives = joined(8, ",", |index| {
        format!(r#"{{"name":"a{index}","deviceClassName":"c","selectors":[{selectors}]}}"#)
    });
    let requests =
        joined(size, ",", |index| format!(r#"{{"name":"r{index}","firstAvailable":[{alternatives}]}}"#));
    let body = format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"objects-device-selectors"}},"spec":{{"devices":{{"requests":[{requests}]}}}}}}"#
    );
    Request::post("/apis/resource.k8s.io/v1/namespaces/hostile/resourceclaims", JSON, body)
}
