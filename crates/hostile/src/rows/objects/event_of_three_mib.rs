//! An event whose note is as long as a body may be.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-event-of-three-mib",
    who: Who::Admin,
    size: Sizes { full: 2_900_000, ten: 29_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let body = format!(
        r#"{{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{{"name":"objects-event"}},"eventTime":"2020-01-01T00:00:00.000000Z","reportingController":"a.dev/b","reportingInstance":"i","action":"a","reason":"r","type":"Normal","series":{{"count":2147483647,"lastObservedTime":"2020-01-01T00:00:00.000000Z"}},"note":"{}"}}"#,
        "n".repeat(size)
    );
    Request::post("/apis/events.k8s.io/v1/namespaces/hostile/events", JSON, body)
}
