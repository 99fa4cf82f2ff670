//! Hundreds of thousands of anchors, each named once, the last of them first.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-many-anchors",
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let anchors = joined(size, ",", |index| format!("&{index:x} 1"));
    Request::review(YAML, format!("{REVIEW_YAML}x: [{anchors}]\ny: *0\n"))
}
