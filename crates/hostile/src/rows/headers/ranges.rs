//! Thousands of ranges of a document, which overlap.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-ranges",
    from: "CVE-2011-3192",
    size: Sizes { full: 9_000, ten: 900 },
    act: Act::Request(request),
    law: Law::says(&[200, 206, 400, 406, 416, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let ranges = joined(size, ",", |index| format!("{index}-"));
    Request::get("/openapi/v2").header("Range", format!("bytes={ranges}"))
}
