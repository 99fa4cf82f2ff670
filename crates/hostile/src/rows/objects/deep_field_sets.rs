//! Sets of fields that are nested as deep as a body can be, and keys that are nested once more.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-deep-field-sets",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 5_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let entry = |manager: &str, fields: String| {
        format!(
            r#"{{"manager":"{manager}","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
        )
    };
    let deep = format!("{}{{}}{}", r#"{"f:a":"#.repeat(size), "}".repeat(size));
    // A key is JSON in a text.
    let key = format!("{}0{}", r#"{\"a\":"#.repeat(size), "}".repeat(size));
    let list = format!("{}0{}", "[".repeat(size), "]".repeat(size));
    let entries = [
        entry("deep", deep),
        entry("key", format!(r#"{{"k:{key}":{{}}}}"#)),
        entry("value", format!(r#"{{"v:{list}":{{}}}}"#)),
    ];
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"objects-deep-field-sets","managedFields":[{}]}}}}"#,
        entries.join(",")
    );
    Request::post(CONFIG_MAPS, JSON, body)
}
