//! Thirty policies, each of which goes through an object as often as its own budget lets it, for each of
//! several writes at once.

use serde_json::json;

use crate::prelude::*;

const NAME: &str = "policies-costly-expressions";
const POLICIES: usize = 30;
const API: &str = "/apis/admissionregistration.k8s.io/v1";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    // Keys of the object.
    size: Sizes { full: 2_000, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[422, 429]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move {
        let path = namespace_of(&stage, NAME).await?;
        for at in 0..POLICIES {
            let name = format!("{NAME}-{at}");
            let rules = json!([{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"] }]);
            let costly = "object.data.all(a, object.data.all(b, object.data.all(c, a + b != c)))";
            let policy = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                "metadata": { "name": name },
                "spec": {
                    "matchConstraints": {
                        "resourceRules": rules,
                        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": NAME } },
                    },
                    "validations": [{ "expression": costly }, { "expression": "!has(object.data.last)" }],
                },
            });
            let all = format!("{API}/validatingadmissionpolicies");
            stage.make(Request::post(all, JSON, policy.to_string())).await?;
            let binding = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": { "name": name },
                "spec": { "policyName": name, "validationActions": ["Deny"] },
            });
            let all = format!("{API}/validatingadmissionpolicybindings");
            stage.make(Request::post(all, JSON, binding.to_string())).await?;
        }
        in_force(&stage, &path).await
    })
}

async fn in_force(stage: &Stage, path: &str) -> Result<(), Error> {
    let mut wire = stage.of(Who::Admin).connect().await?;
    let last = config_map("last", r#""data":{"last":"1"}"#);
    for _ in 0..500 {
        let heard = wire.ask(&Request::post(format!("{path}?dryRun=All"), JSON, last.clone())).await;
        if heard.said == Said::Status(422) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(Error::Answer { what: format!("{NAME} after 10 s"), answer: "no policy is in force".into() })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let data = joined(size, ",", |key| format!(r#""k{key}":"v""#));
        let create = move |index: usize| {
            let members = format!(r#""data":{{"last":"1",{data}}}"#);
            Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), &members))
        };
        stage.each(4, 4, create).await
    })
}
