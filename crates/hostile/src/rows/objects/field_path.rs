//! A field path of a megabyte, in an environment variable.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-field-path",
    who: Who::Admin,
    size: Sizes { full: 1_000_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let path = format!("metadata.annotations{}", "['a']".repeat(size / 5));
    let env = format!(r#"{{"name":"E","valueFrom":{{"fieldRef":{{"fieldPath":"{path}"}}}}}}"#);
    let more = format!(r#""initContainers":[{{"name":"d","image":"i","env":[{env}]}}]"#);
    Request::post(PODS, JSON, pod("objects-field-path", &more))
}
