//! Rules that make long texts and lists out of short ones, and messages of them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-rules-that-make-texts",
    who: Who::Admin,
    size: Sizes { full: 900, ten: 90 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let rules = [
        r#"{"rule":"self.replace('', self) == self","messageExpression":"self.replace('', self)"}"#,
        r#"{"rule":"self.replace('a','bbbbbbbb').replace('b','cccccccc').replace('c','dddddddd').size() < 9"}"#,
        r#"{"rule":"self.split('').size() == 1"}"#,
        r#"{"rule":"self.matches('^(a|aa)+(a|aa)+(a|aa)+$')"}"#,
    ]
    .join(",");
    let properties =
        format!(r#""p":{{"type":"string","maxLength":1000,"x-kubernetes-validations":[{rules}]}}"#);
    let made = definition("longtexts", &object_schema(&properties), "");
    Box::pin(async move { make_served(&stage, made, "longtexts").await })
}

fn request(size: usize) -> Request {
    let text = format!("\"p\":\"{}!\"", "a".repeat(size));
    Request::post(custom_path("longtexts"), JSON, custom("longtexts", "one", &text))
}
