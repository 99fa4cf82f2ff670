//! A list of small objects: the shape that becomes the largest tree.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-wide-objects",
    size: Sizes { full: 390_000, ten: 3_900 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(JSON, format!("{REVIEW}\"x\":[{}]}}", joined(size, ",", |_| r#"{"a":0}"#.to_owned())))
}
