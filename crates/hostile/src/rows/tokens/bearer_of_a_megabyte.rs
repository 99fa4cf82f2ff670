//! A bearer token of a megabyte.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-bearer-of-a-megabyte",
    who: Who::Anonymous,
    size: Sizes { full: 1_000_000, ten: 100_000 },
    act: Act::Request(request),
    law: Law::says(HEADS).or(&[Said::Closed]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get("/api").header("Authorization", format!("Bearer {}", "a".repeat(size)))
}
