//! A text of escapes, each ten bytes for one character.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-escapes",
    size: Sizes { full: 250_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(YAML, format!("{REVIEW_YAML}x: \"{}\"\n", r"\U0001F600".repeat(size)))
}
