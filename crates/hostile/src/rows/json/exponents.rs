//! Numbers that are huge when they are written out.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-exponents",
    size: Sizes { full: 250_000, ten: 2_500 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let numbers = joined(size, ",", |_| "1e999999999".to_owned());
    Request::review(JSON, format!("{REVIEW}\"metadata\":{{\"generation\":1e308}},\"x\":[{numbers}]}}"))
}
