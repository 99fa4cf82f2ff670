//! A continue token as long as a head may be.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-continue-huge",
    who: Who::Admin,
    size: Sizes { full: 45_000, ten: 4_500 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 410, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    use base64::Engine as _;
    let text = format!(r#"{{"v":"meta.k8s.io/v1","rv":1,"start":"{}"}}"#, "a".repeat(size));
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    Request::get(format!("{CONFIG_MAPS}?limit=1&continue={token}"))
}
