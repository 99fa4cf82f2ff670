//! The same where each is worth a warning, which is a header.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-warnings",
    size: Sizes { full: 300_000, ten: 3_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let members = joined(size, ",", |index| format!("\"{index:x}\":0"));
    let path = format!("{REVIEWS}?fieldValidation=Warn");
    Request::post(path, JSON, format!("{REVIEW}\"metadata\":{{{members}}}}}"))
}
