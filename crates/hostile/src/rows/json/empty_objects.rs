//! A list of a million objects without members.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-empty-objects",
    size: Sizes { full: 1_000_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(JSON, format!("{REVIEW}\"x\":[{}]}}", joined(size, ",", |_| "{}".to_owned())))
}
