//! What somebody may do: one question, or all rules at once.
//!
//! In: a review, valid. Out: the review with the authorizer's decision.
//!
//! Source: kubernetes v1.36.3 `registry/authorization`.

use std::sync::Arc;

use forebay_api::{Authorizer as _, Rules, told_together};
use forebay_apimachinery::selector::{
    FieldOperator, FieldRequirement, FieldSelector, LabelOperator, LabelRequirement, LabelSelector,
};
use forebay_apimachinery::{Attributes, Caller, Status, Verb};
use serde_json::{Map, Value, json};

use super::texts::texts;
use crate::handler::{Handler, Head};
use crate::request_info::{Confined, RequestInfo};

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
    let errors: Vec<&str> =
        decision.error().into_iter().chain([error]).filter(|error| !error.is_empty()).collect();
    review["status"] = json!({
        "allowed": decision.is_allowed(), "denied": decision.is_denied(),
        "reason": decision.because().to_string(), "evaluationError": errors.join("; "),
    });
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
        confined: resource.and_then(confined),
        ..RequestInfo::default()
    }
}

/// What a review's selectors confine it to, as far as they can be read: its status says what cannot.
fn confined(attributes: &Map<String, Value>) -> Option<Arc<Confined>> {
    let selector = |name: &str| attributes.get(name).and_then(Value::as_object);
    let (fields, labels) = (selector("fieldSelector"), selector("labelSelector"));
    if fields.is_none() && labels.is_none() {
        return None;
    }
    let raw =
        |of: &Map<String, Value>| of.get("rawSelector").and_then(Value::as_str).unwrap_or("").to_owned();
    let requirements = |of: &Map<String, Value>| of.get("requirements").and_then(Value::as_array).cloned();
    let fields = fields.map_or_else(Vec::new, |of| match requirements(of).unwrap_or_default() {
        all if all.is_empty() => {
            FieldSelector::parse(&raw(of)).map(|read| read.requirements().to_vec()).unwrap_or_default()
        }
        all => all.iter().filter_map(field_requirement).collect(),
    });
    let labels = labels.map_or_else(Vec::new, |of| match requirements(of).unwrap_or_default() {
        all if all.is_empty() => {
            LabelSelector::parse(&raw(of)).map(|read| read.requirements().to_vec()).unwrap_or_default()
        }
        all => all.iter().filter_map(label_requirement).collect(),
    });
    Some(Arc::new(Confined { fields: fields.into(), labels: labels.into() }))
}

fn field_requirement(requirement: &Value) -> Option<FieldRequirement> {
    let operator = match requirement["operator"].as_str()? {
        "In" => FieldOperator::Equals,
        "NotIn" => FieldOperator::NotEquals,
        _ => return None,
    };
    let values = texts(&requirement["values"]);
    let [value] = values.as_slice() else { return None };
    let path = requirement["key"].as_str().unwrap_or("").into();
    Some(FieldRequirement { path, operator, value: value.as_str().into() })
}

fn label_requirement(requirement: &Value) -> Option<LabelRequirement> {
    let operator = match requirement["operator"].as_str()? {
        "In" => LabelOperator::In,
        "NotIn" => LabelOperator::NotIn,
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        _ => return None,
    };
    LabelRequirement::new(requirement["key"].as_str().unwrap_or(""), operator, texts(&requirement["values"]))
        .ok()
}

/// # Errors
/// 400 without a namespace.
pub fn has_namespace(review: &Value) -> Result<(), Status> {
    match review["spec"]["namespace"].as_str().unwrap_or("") {
        "" => Err(Status::bad_request("no namespace on request")),
        _ => Ok(()),
    }
}

/// What the one who asks may do in a namespace.
pub fn rules(handler: &Handler, head: &Head, review: &Value) -> Value {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or("");
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
    review
}
