//! A table, with objects included in a way that there is none of.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-include-object",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(&[200, 400, 406, 414, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::get(format!("{CONFIG_MAPS}?includeObject={}", "%4fbject,".repeat(size / 4)))
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
}
