//! A thousand headers.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-thousand",
    who: Who::Anonymous,
    size: Sizes { full: 1_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    (0..size).fold(Request::get("/livez"), |request, index| request.header(&format!("X-{index}"), "a"))
}
