//! Rules as deep as a text can make them: brackets, signs, choices, selections, lists and maps.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-deep-rules",
    who: Who::Admin,
    size: Sizes { full: 90_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    // Each as long as an expression may be.
    let rules = [
        format!("{}true{}", "(".repeat(size / 2), ")".repeat(size / 2)),
        format!("{}true", "!".repeat(size)),
        format!("{}true", "true?true:".repeat(size / 10)),
        format!("self{}", ".a".repeat(size / 2)),
        format!("{}{} == []", "[".repeat(size / 2), "]".repeat(size / 2)),
        format!("{}1{} == {{}}", "{1:".repeat(size / 4), "}".repeat(size / 4)),
        format!("self{}", ".all(a,a".repeat(size / 8)),
        format!("true{}", " && (true".repeat(size / 9)),
    ];
    let rules = joined(rules.len(), ",", |at| format!(r#"{{"rule":"{}"}}"#, rules[at]));
    let properties =
        format!(r#""p":{{"type":"array","items":{{"type":"string"}},"x-kubernetes-validations":[{rules}]}}"#);
    Request::post(DEFINITIONS, JSON, definition("deeprules", &object_schema(&properties), ""))
}
