//! The name of an object as long as a head may be.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-name-of-64-kib",
    who: Who::Admin,
    size: Sizes { full: 60_000, ten: 6_000 },
    act: Act::Request(request),
    law: Law::says(HEADS),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("{CONFIG_MAPS}/{}", "a".repeat(size)))
}
