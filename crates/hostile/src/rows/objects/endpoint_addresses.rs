//! An endpoint slice of a hundred thousand endpoints, where a thousand are allowed.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-endpoint-addresses",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size + 1_001, ",", |_| r#"{"addresses":["10.0.0.1"]}"#.to_owned());
    let body = format!(
        r#"{{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{{"name":"many"}},"addressType":"IPv4","endpoints":[{all}]}}"#
    );
    Request::post("/apis/discovery.k8s.io/v1/namespaces/hostile/endpointslices", JSON, body)
}
