//! A text that is no UTF-8: each of its bytes becomes three.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-invalid-utf8",
    size: Sizes { full: 2_900_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let head = format!("{REVIEW}\"metadata\":{{\"name\":\"").into_bytes();
    Request::review(JSON, [head, vec![0xff; size], b"\"}}".to_vec()].concat())
}
