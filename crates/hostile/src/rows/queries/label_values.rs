//! A label that is in a set of tens of thousands.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-label-values",
    who: Who::Admin,
    size: Sizes { full: 11_000, ten: 1_100 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let values = joined(size, ",", |index| format!("{index:x}"));
    Request::get(format!("/api/v1/pods?labelSelector=a+in+({values})"))
}
