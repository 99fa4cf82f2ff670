//! Thousands of versions, all of them served.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-versions",
    who: Who::Admin,
    size: Sizes { full: 5_000, ten: 50 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| {
        format!(
            r#"{{"name":"v{}","served":true,"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}"#,
            index + 1,
            index == 0
        )
    });
    let body = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"versions.many.hostile.dev"}},"spec":{{"group":"many.hostile.dev","scope":"Namespaced","names":{{"plural":"versions","kind":"Version"}},"versions":[{all}]}}}}"#
    );
    Request::post(DEFINITIONS, JSON, body)
}
