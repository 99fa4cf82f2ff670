//! A short binding of a role that stands for many rights with long names, by who has others of such names.

use crate::prelude::*;

const NAME: &str = "objects-role-rules";
const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) const ROW: Row = Row {
    name: NAME,
    // Bytes of a resource's name.
    size: Sizes { full: 100_000, ten: 1_000 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(&[201, 403]),
    ..Row::BASE
};

fn path(resource: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{NAME}/{resource}")
}

/// Ten roles of twelve resources that begin alike, for somebody who may bind roles; and one that has these of
/// ten thousand API groups, which they have not but in many looks.
fn prepare(stage: Stage, size: usize) -> Prepared {
    Box::pin(async move {
        namespace_of(&stage, NAME).await?;
        let role = |name: &str, rule: String| {
            let body = format!(
                r#"{{"apiVersion":"{GROUP}/v1","kind":"Role","metadata":{{"name":"{name}"}},"rules":[{rule}]}}"#
            );
            stage.make(Request::post(path("roles"), JSON, body))
        };
        let rule = |verb: &str, groups: &str, resources: &str| {
            format!(r#"{{"verbs":["{verb}"],"apiGroups":[{groups}],"resources":[{resources}]}}"#)
        };
        let long = joined(12, ",", |at| format!(r#""{}{at:02}""#, "x".repeat(size)));
        let groups = joined(10_000, ",", |at| format!(r#""g{at}""#));
        role("given", rule("get", &groups, &long)).await?;
        role("own-0", rule("create", &format!(r#""{GROUP}""#), r#""rolebindings""#)).await?;
        for at in 0..11 {
            let name = format!("own-{at}");
            if at > 0 {
                role(&name, rule("get", r#""*""#, &long)).await?;
            }
            stage.make(Request::post(path("rolebindings"), JSON, binding(&name, &name))).await?;
        }
        Ok(())
    })
}

fn binding(name: &str, role: &str) -> String {
    format!(
        r#"{{"apiVersion":"{GROUP}/v1","kind":"RoleBinding","metadata":{{"name":"{name}"}},"roleRef":{{"apiGroup":"{GROUP}","kind":"Role","name":"{role}"}},"subjects":[{{"apiGroup":"{GROUP}","kind":"User","name":"nobody"}}]}}"#
    )
}

fn request(_size: usize) -> Request {
    Request::post(path("rolebindings"), JSON, binding("given", "given"))
}
