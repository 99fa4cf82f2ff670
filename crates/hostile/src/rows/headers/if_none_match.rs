//! Thousands of tags that a document might have.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-if-none-match",
    size: Sizes { full: 9_000, ten: 900 },
    act: Act::Request(request),
    law: Law::says(&[200, 304, 400, 406, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get("/openapi/v2").header("If-None-Match", joined(size, ",", |index| format!("\"{index:x}\"")))
}
