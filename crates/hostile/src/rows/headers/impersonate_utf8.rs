//! A user's name in UTF-8, as Go reads headers: who drops the header lets the request run as its asker.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "headers-impersonate-utf8",
    who: Who::Admin,
    act: Act::Request(request),
    law: Law::says(&[201]).holds("jürgen"),
    ..Row::BASE
};

fn request(_size: usize) -> Request {
    Request::review(JSON, "{}").header("Impersonate-User", "jürgen")
}
