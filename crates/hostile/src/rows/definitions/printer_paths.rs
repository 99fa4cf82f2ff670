//! A column whose path has a filter in a filter in a filter.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-printer-paths",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let path = format!(".spec.a{}{}", "[?(@.a".repeat(size), ")]".repeat(size));
    let steps = ".a".repeat(size);
    let version = format!(
        r#""additionalPrinterColumns":[{{"name":"c","type":"string","jsonPath":"{path}"}},{{"name":"d","type":"string","jsonPath":"{steps}"}}]"#
    );
    Request::post(DEFINITIONS, JSON, definition("paths", &object_schema(""), &version))
}
