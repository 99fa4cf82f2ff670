//! A schema of properties of properties, tens of thousands of levels deep.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-deep",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let open = r#"{"type":"object","properties":{"a":"#.repeat(size);
    let schema = format!("{open}{{\"type\":\"string\"}}{}", "}}".repeat(size));
    Request::post(DEFINITIONS, JSON, definition("deeps", &schema, ""))
}
