//! Ten levels of lists, each of which names the one before ten times: 10^10 nodes in 600 bytes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-billion-laughs",
    from: "CVE-2019-11253",
    size: Sizes { full: 10, ten: 10 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let levels = joined(size, "", |level| {
        let item = if level == 0 { "lol".to_owned() } else { format!("*l{}", level - 1) };
        format!("l{level}: &l{level} [{}]\n", joined(10, ", ", |_| item.clone()))
    });
    Request::review(YAML, format!("{REVIEW_YAML}{levels}"))
}
