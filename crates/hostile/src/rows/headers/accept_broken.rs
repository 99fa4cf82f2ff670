//! Commas, semicolons and quotes where forms should be.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-accept-broken",
    size: Sizes { full: 15_000, ten: 5_000 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 406, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get("/apis").header("Accept", r#"a/b;c=",;"#.repeat(size / 3))
}
