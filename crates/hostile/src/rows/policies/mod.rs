//! Rows on admission policies that cost as much as they may, or more than their cost says.

use serde_json::{Value, json};

use crate::prelude::*;
use crate::row::Rows;

mod chained_variables;
mod costly_expressions;
mod shared_values;

pub(super) const ROWS: Rows = rows![chained_variables, costly_expressions, shared_values];

const API: &str = "/apis/admissionregistration.k8s.io/v1";

/// A policy about the config maps of the namespace `of`.
fn policy(of: &str, name: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["matchConstraints"] = json!({
        "resourceRules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"] }],
        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": of } },
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name }, "spec": spec,
    })
}

/// Puts policies in force for a namespace of that name, and waits until the last is.
///
/// - `count`: so many of them, with `validations` each, and one that denies what has `last`.
async fn put_in_force(stage: &Stage, of: &str, count: usize, validations: &[&str]) -> Result<(), Error> {
    let path = namespace_of(stage, of).await?;
    let validations = validations.iter().chain(&["!has(object.data.last)"]);
    let validations: Vec<Value> = validations.map(|text| json!({ "expression": text })).collect();
    for at in 0..count {
        let name = format!("{of}-{at}");
        let made = policy(of, &name, &json!({ "validations": validations }));
        let all = format!("{API}/validatingadmissionpolicies");
        stage.make(Request::post(all, JSON, made.to_string())).await?;
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": { "name": name },
            "spec": { "policyName": name, "validationActions": ["Deny"] },
        });
        let all = format!("{API}/validatingadmissionpolicybindings");
        stage.make(Request::post(all, JSON, binding.to_string())).await?;
    }
    in_force(stage, of, &path).await
}

async fn in_force(stage: &Stage, of: &str, path: &str) -> Result<(), Error> {
    let mut wire = stage.of(Who::Admin).connect().await?;
    let last = config_map("last", r#""data":{"last":"1"}"#);
    for _ in 0..500 {
        let heard = wire.ask(&Request::post(format!("{path}?dryRun=All"), JSON, last.clone())).await;
        if heard.said == Said::Status(422) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(Error::Answer { what: format!("{of} after 10 s"), answer: "no policy is in force".into() })
}
