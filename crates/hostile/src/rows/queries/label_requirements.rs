//! A label selector of thousands of requirements.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-label-requirements",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("/api/v1/pods?labelSelector={}a", "!a,".repeat(size)))
}
