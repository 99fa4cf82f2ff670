//! A schema of tens of thousands of properties.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-wide",
    who: Who::Admin,
    size: Sizes { full: 60_000, ten: 600 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""p{index}":{{"type":"string"}}"#));
    Request::post(DEFINITIONS, JSON, definition("wides", &object_schema(&all), ""))
}
