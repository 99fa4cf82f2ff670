//! One object of hundreds of thousands of members.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-many-members",
    size: Sizes { full: 300_000, ten: 3_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let members = joined(size, ",", |index| format!("\"{index:x}\":0"));
    Request::review(JSON, format!("{REVIEW}\"x\":{{{members}}}}}"))
}
