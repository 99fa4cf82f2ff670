//! A folded text of nothing but line breaks.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-blank-lines",
    size: Sizes { full: 2_900_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(YAML, format!("{REVIEW_YAML}x: >+\n{}\n", "\n".repeat(size)))
}
