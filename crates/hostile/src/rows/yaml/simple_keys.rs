//! Within open lists every word may yet turn out to be a key, and go-yaml looked at all of those at every
//! word.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-simple-keys",
    from: "CVE-2019-11254",
    size: Sizes { full: 100, ten: 50 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let open = "[".repeat(size);
    let words = "a, ".repeat(size * 8_000);
    Request::review(YAML, format!("{REVIEW_YAML}x: {open}{words}"))
}
