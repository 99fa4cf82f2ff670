//! An object on which rules cost nearly what they may, each of them and all together.

use crate::prelude::*;

/// The longest list whose rules a definition may have.
const ITEMS_MAX: usize = 300;

pub(super) const ROW: Row = Row {
    name: "definitions-costly-rules",
    who: Who::Admin,
    size: Sizes { full: ITEMS_MAX, ten: 40 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    // Pairs of all items, again and again.
    let rules =
        joined(16, ",", |rule| format!(r#"{{"rule":"self.all(a, self.all(b, a != b + '{rule}'))"}}"#));
    let properties = format!(
        r#""p":{{"type":"array","maxItems":{ITEMS_MAX},"items":{{"type":"string","maxLength":10}},"x-kubernetes-validations":[{rules}]}}"#
    );
    let made = definition("costlyrules", &object_schema(&properties), "");
    Box::pin(async move { make_served(&stage, made, "costlyrules").await })
}

fn request(size: usize) -> Request {
    let items = joined(size, ",", |index| format!("\"{index:08}\""));
    Request::post(custom_path("costlyrules"), JSON, custom("costlyrules", "one", &format!("\"p\":[{items}]")))
}
