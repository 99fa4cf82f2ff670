//! Checks to be left out of `/livez`, thousands of which there are none.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-livez-excludes",
    who: Who::Anonymous,
    size: Sizes { full: 4_000, ten: 400 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 404, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("/livez?verbose&{}", joined(size, "&", |index| format!("exclude=x{index:x}"))))
}
