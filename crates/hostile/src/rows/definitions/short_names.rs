//! Hundreds of thousands of short names, no two of which may be alike.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "definitions-short-names",
    who: Who::Admin,
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""s{index:x}""#));
    let body = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"shorts.hostile.dev"}},"spec":{{"group":"hostile.dev","scope":"Namespaced","names":{{"plural":"shorts","kind":"Short","shortNames":[{all}]}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}]}}}}"#
    );
    Request::post(DEFINITIONS, JSON, body)
}
