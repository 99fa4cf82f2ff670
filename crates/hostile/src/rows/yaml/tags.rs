//! A tag at every value, most of them unknown.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-tags",
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let values = joined(size, ",", |index| format!("!<tag:x,2000:{index}> 1"));
    Request::review(YAML, format!("{REVIEW_YAML}x: [{values}]\ny: !!binary '{}'\n", "!".repeat(size)))
}
