//! A definition with a thousand patterns, each of which is large once it is compiled.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-patterns",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 10 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| {
        format!(r#""p{index}":{{"type":"string","pattern":"^({}{index}){{1,900}}$"}}"#, "[a-z]")
    });
    Request::post(DEFINITIONS, JSON, definition("patterns", &object_schema(&all), ""))
}
