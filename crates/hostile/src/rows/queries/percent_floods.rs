//! A path of nothing but escapes, of escapes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-percent-floods",
    who: Who::Anonymous,
    size: Sizes { full: 20_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(HEADS),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("/api/v1/{}%ff%00%2e%2e%2f", "%25".repeat(size)))
}
