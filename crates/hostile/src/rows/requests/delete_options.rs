//! Options of a deletion as long as a body may be, of an object that is not there.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-delete-options",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(&[400, 404, 413, 422, 429]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let unknown = joined(size, ",", |index| format!(r#""x{index}":[{{}}]"#));
    let body = format!(r#"{{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"],{unknown}}}"#);
    Request::new("DELETE", format!("{CONFIG_MAPS}/none")).body(JSON, body)
}
