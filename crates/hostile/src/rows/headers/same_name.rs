//! The same header, thousands of times.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-same-name",
    who: Who::Anonymous,
    size: Sizes { full: 9_000, ten: 900 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    (0..size).fold(Request::get("/livez"), |request, _| request.header("A", "a"))
}
