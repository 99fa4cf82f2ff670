//! Schemas that refer to themselves, which definitions may not.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-references",
    who: Who::Admin,
    size: Sizes { full: 30_000, ten: 300 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r##""p{index}":{{"$ref":"#/properties/p{index}"}}"##));
    Request::post(DEFINITIONS, JSON, definition("references", &object_schema(&all), ""))
}
