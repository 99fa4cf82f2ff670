//! Labels by the hundred thousand.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-labels",
    who: Who::Admin,
    size: Sizes { full: 250_000, ten: 2_500 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""{index:x}":"""#));
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"objects-labels","labels":{{{all}}}}}}}"#
    );
    Request::post(CONFIG_MAPS, JSON, body)
}
