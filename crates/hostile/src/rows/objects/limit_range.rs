//! A LimitRange of thousands of names, and a pod of a hundred containers that names none of them.

use crate::prelude::*;

const NAME: &str = "objects-limit-range";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    // Names.
    size: Sizes { full: 15_000, ten: 1_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    Box::pin(async move {
        namespace_of(&stage, NAME).await?;
        let account = r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"own"}}"#;
        let path = |resource: &str| format!("/api/v1/namespaces/{NAME}/{resource}");
        stage.make(Request::post(path("serviceaccounts"), JSON, account)).await?;
        let most = joined(size, ",", |at| format!(r#""example.com/n{at}":"1""#));
        let range = format!(
            r#"{{"apiVersion":"v1","kind":"LimitRange","metadata":{{"name":"r"}},"spec":{{"limits":[{{"type":"Container","max":{{{most}}}}}]}}}}"#
        );
        stage.make(Request::post(path("limitranges"), JSON, range)).await
    })
}

fn request(_size: usize) -> Request {
    let all = joined(100, ",", |at| format!(r#"{{"name":"i{at}","image":"i"}}"#));
    let members = format!(r#""serviceAccountName":"own","initContainers":[{all}]"#);
    Request::post(format!("/api/v1/namespaces/{NAME}/pods"), JSON, pod("p", &members))
}
