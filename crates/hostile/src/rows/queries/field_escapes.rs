//! A field selector of backslashes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-field-escapes",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("/api/v1/pods?fieldSelector=metadata.name%3D{}", r"\\,".repeat(size)))
}
