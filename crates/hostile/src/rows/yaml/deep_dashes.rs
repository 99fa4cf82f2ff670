//! Lists in lists in block style, all on one line.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-deep-dashes",
    from: "CVE-2019-11254",
    size: Sizes { full: 1_500_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(YAML, "- ".repeat(size))
}
