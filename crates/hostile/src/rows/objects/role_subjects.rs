//! A binding of tens of thousands of subjects.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-role-subjects",
    who: Who::Admin,
    size: Sizes { full: 40_000, ten: 400 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| {
        format!(r#"{{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"u{index}"}}"#)
    });
    let body = format!(
        r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{{"name":"many"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"none"}},"subjects":[{all}]}}"#
    );
    Request::post("/apis/rbac.authorization.k8s.io/v1/namespaces/hostile/rolebindings", JSON, body)
}
