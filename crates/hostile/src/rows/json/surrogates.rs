//! Escapes of halves of characters.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-surrogates",
    size: Sizes { full: 480_000, ten: 4_800 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(JSON, format!("{REVIEW}\"metadata\":{{\"name\":\"{}\"}}}}", r"\ud800".repeat(size)))
}
