//! A field selector of thousands of requirements.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-field-requirements",
    who: Who::Admin,
    size: Sizes { full: 2_500, ten: 250 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!(
        "/api/v1/pods?fieldSelector={}",
        joined(size, ",", |index| format!("metadata.name!=a{index:x}"))
    ))
}
