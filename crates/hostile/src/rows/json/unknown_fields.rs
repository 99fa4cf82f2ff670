//! Hundreds of thousands of fields that nobody knows, each worth a message to a strict server.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-unknown-fields",
    size: Sizes { full: 300_000, ten: 3_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let members = joined(size, ",", |index| format!("\"{index:x}\":0"));
    let path = format!("{REVIEWS}?fieldValidation=Strict");
    Request::post(path, JSON, format!("{REVIEW}\"metadata\":{{{members}}}}}"))
}
