//! Thousands of codings to choose from.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-accept-encodings",
    size: Sizes { full: 6_000, ten: 600 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 406, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get("/openapi/v2")
        .header("Accept-Encoding", joined(size, ",", |index| format!("x{index};q=0.1")))
}
