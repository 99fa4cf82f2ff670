//! Nothing but opening brackets.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-deep-lists",
    from: "CVE-2019-11253",
    size: Sizes { full: 3_000_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(YAML, "[".repeat(size))
}
