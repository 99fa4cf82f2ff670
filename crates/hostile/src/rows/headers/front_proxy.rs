//! The headers of a front proxy, by somebody who is none.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-front-proxy",
    act: Act::Request(request),
    law: Law::says(&[201]).holds("\"nobody\""),
    ..Row::BASE
};

fn request(_size: usize) -> Request {
    Request::review(JSON, "{}").header("X-Remote-User", "admin").header("X-Remote-Group", "system:masters")
}
