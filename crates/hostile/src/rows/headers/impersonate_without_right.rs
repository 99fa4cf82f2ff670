//! Somebody without rights who says that they are somebody with all of them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-impersonate-without-right",
    act: Act::Request(request),
    law: Law::says(&[403]),
    ..Row::BASE
};

fn request(_size: usize) -> Request {
    Request::review(JSON, "{}")
        .header("Impersonate-User", "admin")
        .header("Impersonate-Group", "system:masters")
}
