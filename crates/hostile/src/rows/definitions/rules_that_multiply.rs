//! Short rules whose macros are a thousand parts each.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-rules-that-multiply",
    who: Who::Admin,
    size: Sizes { full: 15_000, ten: 150 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let rule = format!(r#"{{"rule":"optional.of(1){}.hasValue()"}}"#, ".optMap(v,v)".repeat(8));
    let rules = joined(size, ",", |_| rule.clone());
    let properties = format!(r#""p":{{"type":"string","x-kubernetes-validations":[{rules}]}}"#);
    Request::post(DEFINITIONS, JSON, definition("multiply", &object_schema(&properties), ""))
}
