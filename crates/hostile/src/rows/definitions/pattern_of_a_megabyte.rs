//! One pattern of alternatives, a megabyte long.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-pattern-of-a-megabyte",
    who: Who::Admin,
    size: Sizes { full: 1_000_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let pattern = joined(size / 6, "|", |index| format!("{index:05x}"));
    let properties = format!(r#""p":{{"type":"string","pattern":"{pattern}"}}"#);
    Request::post(DEFINITIONS, JSON, definition("longpatterns", &object_schema(&properties), ""))
}
