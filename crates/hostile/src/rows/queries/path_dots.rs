//! A path that goes up and down thousands of times.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-path-dots",
    who: Who::Admin,
    size: Sizes { full: 7_000, ten: 700 },
    act: Act::Request(request),
    law: Law::says(&[301, 400, 403, 404, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("/api{}//v1/namespaces/../secrets", "/../a/.".repeat(size)))
}
