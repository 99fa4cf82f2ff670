//! A user's name that is no UTF-8. Whatever the answer is, it is not one to the asker.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-impersonate-no-utf8",
    who: Who::Admin,
    act: Act::Request(request),
    law: Law::says(&[400]),
    ..Row::BASE
};

fn request(_size: usize) -> Request {
    Request::review(JSON, "{}").header("Impersonate-User", vec![b'j', 0xfc, b'r', b'g'])
}
