//! Thousands of groups, a header each.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-impersonate-groups",
    who: Who::Admin,
    size: Sizes { full: 5_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(&[201, 400, 413, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let review = Request::review(JSON, "{}").header("Impersonate-User", "u");
    (0..size).fold(review, |review, index| review.header("Impersonate-Group", format!("g{index}")))
}
