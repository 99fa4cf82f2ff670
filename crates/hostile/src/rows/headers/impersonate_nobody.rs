//! Groups and attributes of a user who is not named: the request must not run as its asker.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-impersonate-nobody",
    who: Who::Admin,
    act: Act::Request(request),
    law: Law::says(&[400]),
    ..Row::BASE
};

fn request(_size: usize) -> Request {
    Request::review(JSON, "{}").header("Impersonate-User", "").header("Impersonate-Group", "system:masters")
}
