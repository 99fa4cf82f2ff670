//! What somebody may do: one question, or all rules at once.
//!
//! In: a review, valid. Out: the review with the authorizer's decision.
//!
//! Source: kubernetes v1.36.3 `registry/authorization`.

use forebay_api::{Authorizer as _, Rules, told_together};
use forebay_apimachinery::{Attributes, Caller, Status, Verb};
use serde_json::{Map, Value, json};

use super::texts::texts;
use crate::handler::{Handler, Head};
use crate::request_info::RequestInfo;
use crate::status::Failure;

/// Whether the subject of the review, or who asks if it is about oneself, may do what it says.
///
/// - `error`: what of its selectors is not understood.
pub async fn subject(handler: &Handler, head: &Head, mut review: Value, error: &str) -> Value {
    let spec = &review["spec"];
    let is_self = review["kind"] == "SelfSubjectAccessReview";
    let user = if is_self { head.asker.caller().as_ref().clone() } else { subject_of(spec) };
    let request = request(spec);
    let asked = Attributes { caller: &user, verb: &request.verb, about: request.about() };
    let decision = handler.access.authorize(&asked).wait().await;
    review["status"] = json!({ "allowed": decision.is_allowed(), "reason": decision.because().to_string(), "evaluationError": error });
    review
}

fn subject_of(spec: &Value) -> Caller {
    let text = |name: &str| spec[name].as_str().unwrap_or("").to_string();
    let extra = spec["extra"].as_object().into_iter().flatten();
    Caller {
        name: text("user"),
        uid: text("uid"),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    }
}

/// The request that a review asks about.
fn request(spec: &Value) -> RequestInfo {
    let resource = spec["resourceAttributes"].as_object();
    let attributes = resource.or_else(|| spec["nonResourceAttributes"].as_object());
    let text = |name: &str| attributes.and_then(|of| of.get(name)?.as_str()).unwrap_or("").to_string();
    RequestInfo {
        is_resource: resource.is_some(),
        path: text("path"),
        verb: Verb::named(&text("verb")),
        group: text("group"),
        version: Some(text("version"))
            .filter(|version| !version.is_empty())
            .unwrap_or_else(|| "*".to_string()),
        namespace: text("namespace"),
        resource: text("resource"),
        subresource: text("subresource"),
        name: text("name"),
        ..RequestInfo::default()
    }
}

/// What the one who asks may do in a namespace.
///
/// # Errors
/// 400 without a namespace.
pub fn rules(handler: &Handler, head: &Head, review: &Value) -> Result<Value, Failure> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or("");
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request").into());
    }
    let mut rules = Rules::default();
    handler.access.rules(&head.asker.caller(), namespace, &mut rules);
    let resources = rules.resources.iter().map(|rule| {
        let mut shown = json!({ "verbs": rule.verbs, "apiGroups": rule.groups, "resources": rule.resources });
        if !rule.names.is_empty() {
            shown["resourceNames"] = json!(rule.names);
        }
        shown
    });
    let paths = rules.paths.iter().map(|rule| json!({ "verbs": rule.verbs, "nonResourceURLs": rule.paths }));
    let mut review = json!({
        "metadata": Map::new(),
        "spec": Map::new(),
        "status": {
            "resourceRules": resources.collect::<Vec<_>>(),
            "nonResourceRules": paths.collect::<Vec<_>>(),
            "incomplete": rules.incomplete,
        },
    });
    if !rules.errors.is_empty() {
        review["status"]["evaluationError"] = told_together(&rules.errors).into();
    }
    Ok(review)
}
