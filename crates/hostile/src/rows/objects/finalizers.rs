//! More than a hundred thousand finalizers.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-finalizers",
    who: Who::Admin,
    size: Sizes { full: 150_000, ten: 1_500 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""x.dev/{index}""#));
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"objects-finalizers","finalizers":[{all}]}}}}"#
    );
    Request::post(CONFIG_MAPS, JSON, body)
}
