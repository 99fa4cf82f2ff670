//! A name with a byte in it that ends texts elsewhere, and one that leads out of its place in the store.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-name-with-nul",
    who: Who::Admin,
    act: Act::Request(request),
    law: Law::says(HEADS),
    ..Row::BASE
};

fn request(_size: usize) -> Request {
    Request::get("/api/v1/namespaces/hostile%00x/configmaps/..%2f..%2fsecrets%00")
}
