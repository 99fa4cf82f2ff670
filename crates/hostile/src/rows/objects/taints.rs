//! A node with tens of thousands of taints, which must all differ, and addresses and pod ranges likewise.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-taints",
    who: Who::Admin,
    size: Sizes { full: 60_000, ten: 600 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let taints = joined(size, ",", |index| format!(r#"{{"key":"k{index}","effect":"NoSchedule"}}"#));
    let again = r#"{"key":"k0","effect":"NoSchedule"}"#;
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"taints"}},"spec":{{"taints":[{taints},{again}]}}}}"#
    );
    Request::post("/api/v1/nodes", JSON, body)
}
