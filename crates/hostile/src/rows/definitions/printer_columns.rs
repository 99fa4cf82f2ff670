//! Ten thousand columns.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-printer-columns",
    who: Who::Admin,
    size: Sizes { full: 10_000, ten: 100 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| {
        format!(r#"{{"name":"c{index}","type":"string","jsonPath":".spec.c{index}"}}"#)
    });
    let version = format!(r#""additionalPrinterColumns":[{all}]"#);
    Request::post(DEFINITIONS, JSON, definition("columns", &object_schema(""), &version))
}
