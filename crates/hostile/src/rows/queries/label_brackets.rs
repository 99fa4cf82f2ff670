//! A label selector of brackets.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-label-brackets",
    who: Who::Admin,
    size: Sizes { full: 60_000, ten: 6_000 },
    act: Act::Request(request),
    law: Law::says(&[400, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("/api/v1/pods?labelSelector={}", "(".repeat(size)))
}
