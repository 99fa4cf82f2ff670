//! An update that names ten thousand managers, each of one field.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-managers-of-an-update",
    who: Who::Admin,
    size: Sizes { full: 10_000, ten: 100 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("objects-managers-of-an-update", r#""data":{"a":"0"}"#);
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    // Most recent first, and one second each: what is merged first is what stands last.
    let all = joined(size, ",", |index| {
        let (hours, minutes, seconds) = (23 - index / 3600 % 24, 59 - index / 60 % 60, 59 - index % 60);
        format!(
            r#"{{"manager":"m{index}","operation":"Update","apiVersion":"v1","time":"2020-01-01T{hours:02}:{minutes:02}:{seconds:02}Z","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{".":{{}},"f:a{index}":{{}}}}}}}}"#
        )
    });
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"objects-managers-of-an-update","managedFields":[{all}]}},"data":{{"a":"1"}}}}"#
    );
    Request::new("PUT", format!("{CONFIG_MAPS}/objects-managers-of-an-update")).body(JSON, body)
}
