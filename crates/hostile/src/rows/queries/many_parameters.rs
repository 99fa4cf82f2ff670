//! Tens of thousands of parameters.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-many-parameters",
    size: Sizes { full: 21_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 401, 403, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("/version?{}", joined(size, "&", |_| "a=".to_owned())))
}
