//! The same key, hundreds of thousands of times.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-duplicate-keys",
    size: Sizes { full: 300_000, ten: 3_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(YAML, format!("{REVIEW_YAML}x: {{{}}}\n", joined(size, ", ", |_| "aaaaa: 1".to_owned())))
}
