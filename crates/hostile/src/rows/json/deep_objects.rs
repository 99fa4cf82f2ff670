//! Objects in objects, all of them closed.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-deep-objects",
    from: "kubernetes#83253",
    size: Sizes { full: 500_000, ten: 20_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::review(JSON, format!("{REVIEW}\"x\":{}0{}}}", r#"{"a":"#.repeat(size), "}".repeat(size)))
}
