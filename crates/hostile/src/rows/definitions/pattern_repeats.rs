//! Repetitions of repetitions, of classes as large as Unicode: what they become does not show in their
//! length.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-pattern-repeats",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let pattern = format!(r"^((\\p{{L}}{{1,{size}}}){{1,{size}}}){{1,{size}}}$");
    let properties = format!(r#""p":{{"type":"string","pattern":"{pattern}"}}"#);
    Request::post(DEFINITIONS, JSON, definition("repeats", &object_schema(&properties), ""))
}
