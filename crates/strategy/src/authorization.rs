//! Reviews of access: what is wrong with one, and which parts of its selectors cannot be read.
//!
//! In: a review as its type has it. Out: causes; a sentence for its status. Never: decides on access.
//!
//! Source: kubernetes v1.36.3 `apis/authorization/validation`, `registry/authorization/util`.

#[cfg(test)]
mod tests;

use forebay_apimachinery::Cause;
use forebay_apimachinery::json::to_go_text;
use forebay_apimachinery::selector::{FieldSelector, LabelSelector};
use forebay_schema::builtin::{codec, table};
use serde_json::{Value, json};

use super::field::{BadValue, Causes, Path};
use super::meta::{label_key, label_value};
use super::value::{Members, child, child_or_empty, objects, text, texts};

/// What is wrong with a review of `kind`.
pub(crate) fn validate_access_review(kind: &str, review: &Value) -> Vec<Cause> {
    review.as_object().map(|review| validate(kind, review).into_vec()).unwrap_or_default()
}

/// What of a review's selectors is not understood, as its status says it; empty when all is.
pub fn evaluation_error(review: &Value) -> String {
    review["spec"]["resourceAttributes"].as_object().map(misread).unwrap_or_default()
}

fn validate(kind: &str, review: &Members) -> Causes {
    let mut causes = Causes::default();
    let spec = child_or_empty(review, "spec");
    let metadata = child_or_empty(review, "metadata");
    let (resource, path) = (child(spec, "resourceAttributes"), child(spec, "nonResourceAttributes"));
    validate_spec(kind, spec, &mut causes);
    let is_local = kind == "LocalSubjectAccessReview";
    let allowed = if is_local { &["namespace"][..] } else { &[] };
    if !is_empty_apart_from(metadata, allowed) {
        let detail = if is_local { "must be empty except for namespace" } else { "must be empty" };
        causes.invalid(&Path::root("metadata"), BadValue::shown(metadata_shown(metadata)), detail);
    }
    if !is_local {
        return causes;
    }
    if let Some(asked) = resource.map(|resource| text(resource, "namespace"))
        && asked != text(metadata, "namespace")
    {
        let at = Path::root("spec.resourceAttributes.namespace");
        causes.invalid(&at, asked, "must match metadata.namespace");
    }
    if let Some(path) = path {
        let at = Path::root("spec.nonResourceAttributes");
        causes.invalid(&at, path_shown(path), "disallowed on this kind of request");
    }
    causes
}

fn validate_spec(kind: &str, spec: &Members, causes: &mut Causes) {
    let at = Path::root("spec");
    match (child(spec, "resourceAttributes"), child(spec, "nonResourceAttributes")) {
        (Some(_), Some(path)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            causes.invalid(&at.child("nonResourceAttributes"), path_shown(path), detail);
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.invalid(&at.child("resourceAttributes"), BadValue::Nil, detail);
        }
        _ => {}
    }
    let names_nobody = text(spec, "user").is_empty() && texts(spec, "groups").next().is_none();
    if kind != "SelfSubjectAccessReview" && names_nobody {
        causes.invalid(&at.child("user"), "", "at least one of user or group must be specified");
    }
    if let Some(attributes) = child(spec, "resourceAttributes") {
        let at = at.child("resourceAttributes");
        validate_selector(attributes, "fieldSelector", field_requirement, &at, causes);
        validate_selector(attributes, "labelSelector", label_requirement, &at, causes);
    }
}

fn validate_selector(
    attributes: &Members,
    name: &str,
    validate: fn(&Members, &Path<'_>, &mut Causes),
    at: &Path<'_>,
    causes: &mut Causes,
) {
    let Some(selector) = child(attributes, name) else { return };
    let at = at.child(name);
    let raw = text(selector, "rawSelector");
    let has_requirements = objects(selector, "requirements").next().is_some();
    if !raw.is_empty() && has_requirements {
        let detail = "may not specified at the same time as requirements";
        causes.invalid(&at.child("rawSelector"), raw, detail);
    }
    if raw.is_empty() && !has_requirements {
        let detail = format!("when {at} is specified, requirements or rawSelector is required");
        causes.required(&at.child("requirements"), &detail);
    }
    for (index, requirement) in objects(selector, "requirements").enumerate() {
        validate(requirement, &at.child("requirements").index(index), causes);
    }
}

fn field_requirement(requirement: &Members, at: &Path<'_>, causes: &mut Causes) {
    if text(requirement, "key").is_empty() {
        causes.required(&at.child("key"), "must be specified");
    }
    operator(requirement, at, causes);
}

fn label_requirement(requirement: &Members, at: &Path<'_>, causes: &mut Causes) {
    operator(requirement, at, causes);
    label_key(text(requirement, "key"), &at.child("key"), causes);
    for (index, value) in texts(requirement, "values").enumerate() {
        label_value(value, &at.child("values").index(index), causes);
    }
}

/// Operators of a later version are let pass: they are ignored, which asks for more than was meant.
fn operator(requirement: &Members, at: &Path<'_>, causes: &mut Causes) {
    let has_values = texts(requirement, "values").next().is_some();
    match text(requirement, "operator") {
        "In" | "NotIn" if !has_values => {
            causes.required(&at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if has_values => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.forbidden(&at.child("values"), detail);
        }
        _ => {}
    }
}

/// As Go shows the struct, which has no names for JSON.
fn path_shown(path: &Members) -> BadValue<'static> {
    let quoted = |name| to_go_text(&Value::from(text(path, name)));
    BadValue::shown(format!("{{\"Path\":{},\"Verb\":{}}}", quoted("path"), quoted("verb")))
}

fn is_empty_apart_from(metadata: &Members, allowed: &[&str]) -> bool {
    let mut rest = metadata.clone();
    // Few: the members that a review may have.
    rest.retain(|name, _| name != "managedFields" && !allowed.contains(&name.as_str()));
    metadata_shown(&rest) == "{}"
}

fn metadata_shown(metadata: &Members) -> String {
    let value = Value::Object(metadata.clone());
    let mut out = Vec::new();
    match table().type_named("meta/v1", "ObjectMeta") {
        Some(ty) if codec::write_json(ty, &value, &mut out).is_ok() => String::from_utf8_lossy(&out).into(),
        _ => to_go_text(&json!(value)),
    }
}

fn misread(attributes: &Members) -> String {
    let mut errors = Vec::new();
    for (name, read) in [
        ("fieldSelector", read_field_selector as fn(&Members) -> Read),
        ("labelSelector", read_label_selector),
    ] {
        let how = match child(attributes, name).map_or(Read::Whole, read) {
            Read::Whole => continue,
            Read::Partly => "partially ignored",
            Read::NotAtAll => "ignored",
        };
        errors.push(format!("spec.resourceAttributes.{name} {how} due to parse error"));
    }
    errors.join("; ")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Whole,
    Partly,
    NotAtAll,
}

impl Read {
    /// Of requirements, some of which are understood.
    fn of(understood: impl Iterator<Item = bool>) -> Read {
        let (mut good, mut bad) = (false, false);
        for one in understood {
            good |= one;
            bad |= !one;
        }
        match (good, bad) {
            (_, false) => Read::Whole,
            (true, true) => Read::Partly,
            (false, true) => Read::NotAtAll,
        }
    }
}

fn read_field_selector(selector: &Members) -> Read {
    let raw = text(selector, "rawSelector");
    if !raw.is_empty() {
        return if FieldSelector::parse(raw).is_ok() { Read::Whole } else { Read::NotAtAll };
    }
    Read::of(objects(selector, "requirements").map(|requirement| {
        let is_known = matches!(text(requirement, "operator"), "In" | "NotIn");
        is_known && texts(requirement, "values").count() == 1
    }))
}

fn read_label_selector(selector: &Members) -> Read {
    let raw = text(selector, "rawSelector");
    if !raw.is_empty() {
        return if LabelSelector::parse(raw).is_ok() { Read::Whole } else { Read::NotAtAll };
    }
    // Keys and values have been validated: what is left to be misunderstood is the operator.
    Read::of(
        objects(selector, "requirements")
            .map(|one| matches!(text(one, "operator"), "In" | "NotIn" | "Exists" | "DoesNotExist")),
    )
}
