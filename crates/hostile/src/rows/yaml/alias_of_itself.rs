//! Lists that hold themselves.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-alias-of-itself",
    size: Sizes { full: 500_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(YAML, format!("{REVIEW_YAML}x: &a [{}]\n", joined(size, ", ", |_| "*a".to_owned())))
}
