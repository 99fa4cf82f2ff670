//! One mapping of thousands of members, merged into tens of thousands of others.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-merge-keys",
    size: Sizes { full: 60_000, ten: 3_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let members = joined(size / 2, ", ", |index| format!("k{index}: 0"));
    let merges = joined(size, "", |_| "- {<<: *a}\n".to_owned());
    Request::review(YAML, format!("{REVIEW_YAML}base: &a {{{members}}}\nall:\n{merges}"))
}
