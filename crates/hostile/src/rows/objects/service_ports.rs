//! A service of tens of thousands of ports, no two of which may be alike.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-service-ports",
    who: Who::Admin,
    size: Sizes { full: 60_000, ten: 600 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let ports = joined(size, ",", |index| format!(r#"{{"name":"p{index}","port":{}}}"#, index % 60_000 + 1));
    let again = r#"{"name":"p0","port":1}"#;
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"ports"}},"spec":{{"clusterIP":"None","ports":[{ports},{again}]}}}}"#
    );
    Request::post("/api/v1/namespaces/hostile/services", JSON, body)
}
