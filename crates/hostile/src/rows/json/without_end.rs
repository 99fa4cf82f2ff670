//! A document that is right up to its last byte, which is missing.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-without-end",
    size: Sizes { full: 600_000, ten: 6_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(JSON, format!("{REVIEW}\"x\":[{}", joined(size, ",", |_| r#""ab""#.to_owned())))
}
