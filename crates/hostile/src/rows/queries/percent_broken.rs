//! Escapes that are none.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-percent-broken",
    who: Who::Admin,
    size: Sizes { full: 10_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(HEADS),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("/api/v1/namespaces/%zz{}%", "%".repeat(size)))
}
