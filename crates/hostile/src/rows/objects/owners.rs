//! Tens of thousands of owners, two of whom are controllers.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-owners",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 200 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"{index}","controller":{}}}"#,
            index < 2
        )
    });
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"objects-owners","ownerReferences":[{all}]}}}}"#
    );
    Request::post(CONFIG_MAPS, JSON, body)
}
