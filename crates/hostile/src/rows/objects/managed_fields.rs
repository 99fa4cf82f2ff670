//! Managed fields of tens of thousands of managers, and each with a deep path.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-managed-fields",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 200 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| {
        format!(
            r#"{{"manager":"m{index}","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{"f:a":{{}}}}}}}}"#
        )
    });
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"objects-managed-fields","managedFields":[{all}]}}}}"#
    );
    Request::post(CONFIG_MAPS, JSON, body)
}
