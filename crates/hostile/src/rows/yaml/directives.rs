//! Hundreds of thousands of tag directives in front of a document.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-directives",
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let directives = joined(size, "", |index| format!("%TAG !{index:x}! tag:x,2000:\n"));
    Request::review(YAML, format!("{directives}---\n{REVIEW_YAML}"))
}
