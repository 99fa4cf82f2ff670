//! Members whose names are escapes, in letters of either case: who looks names up by folding them does it for
//! each.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "json-escaped-names",
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let members = joined(size, ",", |_| r#""\u006d\u0045tadata":{}"#.to_owned());
    Request::review(JSON, format!("{REVIEW}{members}}}"))
}
