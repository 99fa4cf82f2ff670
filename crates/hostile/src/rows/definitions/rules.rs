//! Thousands of validation rules, each of which would take for ever.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-rules",
    who: Who::Admin,
    size: Sizes { full: 2_000, ten: 20 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let rules =
        joined(size, ",", |_| r#"{"rule":"self.all(a, self.all(b, self.all(c, a != b + c)))"}"#.to_owned());
    let properties =
        format!(r#""p":{{"type":"array","items":{{"type":"string"}},"x-kubernetes-validations":[{rules}]}}"#);
    Request::post(DEFINITIONS, JSON, definition("rules", &object_schema(&properties), ""))
}
