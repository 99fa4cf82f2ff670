//! The same anchor, hundreds of thousands of times.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-anchors-redefined",
    size: Sizes { full: 400_000, ten: 4_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(YAML, format!("{REVIEW_YAML}x:\n{}", "- &a 1\n".repeat(size)))
}
