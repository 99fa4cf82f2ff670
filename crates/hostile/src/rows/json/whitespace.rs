//! Megabytes of blanks, and nearly nothing.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-whitespace",
    size: Sizes { full: 3_000_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(JSON, format!("{}{REVIEW}\"metadata\":{{}}}}", " ".repeat(size)))
}
