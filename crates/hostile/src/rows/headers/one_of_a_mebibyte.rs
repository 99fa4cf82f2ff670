//! One header of a mebibyte.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-one-of-a-mebibyte",
    from: "CVE-2021-31525",
    who: Who::Anonymous,
    size: Sizes { full: 1_048_576, ten: 1_048_576 },
    act: Act::Request(request),
    law: Law::says(HEADS).or(&[Said::Closed]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get("/livez").header("X-A", "a".repeat(size))
}
