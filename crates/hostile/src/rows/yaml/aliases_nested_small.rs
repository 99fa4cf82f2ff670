//! 300 bytes of aliases that stay just below a limit on nodes: what they expand to is megabytes of JSON.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-aliases-nested-small",
    size: Sizes { full: 13, ten: 5 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let levels = joined(size, "", |level| match level {
        0 => format!("l0: &l0 {}\n", "z".repeat(60)),
        _ => format!("l{level}: &l{level} [*l{0}, *l{0}]\n", level - 1),
    });
    let last = size - 1;
    Request::review(
        YAML,
        format!("{REVIEW_YAML}{levels}all: [{}]\n", joined(20, ", ", |_| format!("*l{last}"))),
    )
}
