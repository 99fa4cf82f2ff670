//! One text of 100 KB, and twenty thousand aliases of it: 2 GB if each were a copy.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-aliases-of-a-long-text",
    from: "CVE-2019-11253",
    size: Sizes { full: 20_000, ten: 100 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let text = "x".repeat(size * 5);
    let aliases = joined(size, ", ", |_| "*t".to_owned());
    Request::review(YAML, format!("{REVIEW_YAML}text: &t {text}\nall: [{aliases}]\n"))
}
