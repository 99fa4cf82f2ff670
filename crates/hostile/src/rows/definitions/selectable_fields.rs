//! Tens of thousands of fields to select by, where eight are allowed.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-selectable-fields",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 200 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#"{{"jsonPath":".p{index}"}}"#));
    let version = format!(r#""selectableFields":[{all}]"#);
    Request::post(DEFINITIONS, JSON, definition("selectables", &object_schema(""), &version))
}
