//! A number of millions of digits, where a number may stand.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-long-number",
    size: Sizes { full: 2_900_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(JSON, format!("{REVIEW}\"metadata\":{{\"generation\":{}}}}}", "9".repeat(size)))
}
