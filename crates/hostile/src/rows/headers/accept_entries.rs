//! A thousand forms to choose from.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-accept-entries",
    size: Sizes { full: 900, ten: 400 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 406, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let accept =
        joined(size, ",", |index| format!("application/json;as=Table;g=meta.k8s.io;v=v{index};q=0.{index}"));
    Request::get("/openapi/v2").header("Accept", accept)
}
