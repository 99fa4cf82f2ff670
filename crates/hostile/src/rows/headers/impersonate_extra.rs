//! Thousands of attributes, whose names are escapes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-impersonate-extra",
    who: Who::Admin,
    size: Sizes { full: 2_000, ten: 500 },
    act: Act::Request(request),
    law: Law::says(&[201, 400, 413, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let review = Request::review(JSON, "{}").header("Impersonate-User", "u");
    (0..size).fold(review, |review, index| {
        review.header(&format!("Impersonate-Extra-%6{}{index}", index % 10), "v")
    })
}
