//! The same member, hundreds of thousands of times, where a strict server lists them all in its answer.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-duplicate-members",
    size: Sizes { full: 400_000, ten: 4_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let members = joined(size, ",", |_| r#""a":1"#.to_owned());
    let path = format!("{REVIEWS}?fieldValidation=Strict");
    Request::post(path, JSON, format!("{REVIEW}\"metadata\":{{\"labels\":{{{members}}}}}}}"))
}
