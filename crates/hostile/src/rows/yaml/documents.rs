//! Hundreds of thousands of documents in one body.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-documents",
    size: Sizes { full: 700_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(YAML, format!("{REVIEW_YAML}{}", "---\n".repeat(size)))
}
