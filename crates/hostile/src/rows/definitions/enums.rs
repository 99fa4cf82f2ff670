//! An enumeration of hundreds of thousands of values.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-enums",
    who: Who::Admin,
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""e{index:x}""#));
    let properties = format!(r#""p":{{"type":"string","enum":[{all}]}}"#);
    Request::post(DEFINITIONS, JSON, definition("enums", &object_schema(&properties), ""))
}
