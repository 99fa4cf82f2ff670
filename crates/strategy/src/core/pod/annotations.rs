//! What the annotations of a pod, or of a template, may say, and which of them a pod keeps.
//!
//! In: annotations with the spec that they stand beside, and those that were there. Out: causes. Never:
//! changes one, or makes a field of it; `app_armor` does.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use forebay_apimachinery::json;
use forebay_apimachinery::lease::Lease;
use serde_json::Value;

use super::app_armor;
use super::mounts::descending_path;
use super::spec::toleration_rules;
use super::warnings::{SECCOMP_CONTAINER, SECCOMP_POD, each_container};
use crate::field::{Causes, Path};
use crate::value::{Members, child, child_or_empty, text, text_opt};

pub const MIRROR: &str = "kubernetes.io/config.mirror";
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";

/// Those of a pod.
pub fn of_pod(pod: &Members) -> &Members {
    child_or_empty(child_or_empty(pod, "metadata"), "annotations")
}

/// What they may say.
///
/// - `old`: those that were there, if some were: a cost that made no sense then may go on.
pub fn validate(
    annotations: &Members,
    old: Option<&Members>,
    spec: &Members,
    at: &Path<'_>,
    causes: &mut Causes,
) {
    if annotations.is_empty() {
        return;
    }
    if annotations.contains_key(MIRROR) && text(spec, "nodeName").is_empty() {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        causes.invalid(&at.key(MIRROR), text(annotations, MIRROR), detail);
    }
    if !text(annotations, TOLERATIONS).is_empty() {
        tolerations(text(annotations, TOLERATIONS), at, causes);
    }
    if !is_cost(annotations) && old.is_none_or(is_cost) {
        causes.invalid(&at.key(COST), text(annotations, COST), "must be a 32bit integer");
    }
    seccomp(annotations, at, causes);
    app_armor::annotations(annotations, spec, at, causes);
}

/// Which of them a pod keeps as they are.
pub fn validate_update(new: &Members, old: &Members, causes: &mut Causes) {
    let meta = Path::root("metadata");
    let at = meta.child("annotations");
    let (annotations, before) = (of_pod(new), of_pod(old));
    let kept = |key: &str| match key {
        MIRROR => Some("mirror pod annotation"),
        key => key.starts_with(app_armor::PREFIX).then_some("AppArmor annotations"),
    };
    for (key, value) in before {
        if let Some(what) = kept(key).filter(|_| annotations.get(key) != Some(value)) {
            causes.forbidden(&at.key(key), &format!("may not remove or update {what}"));
        }
    }
    for key in annotations.keys().filter(|key| !before.contains_key(*key)) {
        if let Some(what) = kept(key) {
            causes.forbidden(&at.key(key), &format!("may not add {what}"));
        }
    }
    validate(annotations, Some(before), child_or_empty(new, "spec"), &at, causes);
}

/// Whether what deleting costs, if it is said, is a number as Go would write it.
fn is_cost(annotations: &Members) -> bool {
    let cost = text(annotations, COST);
    !annotations.contains_key(COST) || cost.parse::<i32>().is_ok_and(|number| number.to_string() == cost)
}

/// Tolerations as JSON. Nobody follows them any more.
fn tolerations(said: &str, at: &Path<'_>, causes: &mut Causes) {
    let read = json::parse(said.as_bytes(), &Lease::of_one_tree()).map_err(|error| error.to_string());
    let list = match read.and_then(|parsed| tolerations_of(parsed.value)) {
        Ok(list) => list,
        Err(why) => return causes.invalid(at, TOLERATIONS, &why),
    };
    let at = at.child(TOLERATIONS);
    for (index, toleration) in list.iter().enumerate() {
        if causes.is_full() {
            break;
        }
        toleration_rules(toleration, &at.index(index), causes);
    }
}

/// The members by the names that they have in a pod. Go takes them in any case.
fn tolerations_of(value: Value) -> Result<Vec<Members>, String> {
    const NAMES: [&str; 5] = ["key", "operator", "value", "effect", "tolerationSeconds"];
    let not_a = |value: &Value, what: &str| {
        // Go shows a number where it wanted another one.
        let shown = value.as_number().filter(|_| what.ends_with("int64")).map(|number| format!(" {number}"));
        let kind = json::kind_of(value);
        format!("json: cannot unmarshal {kind}{} into Go {what}", shown.unwrap_or_default())
    };
    let items = match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        other => return Err(not_a(&other, "value of type []core.Toleration")),
    };
    let toleration = |item: Value| match item {
        Value::Null => Ok(Members::new()),
        Value::Object(members) => {
            let mut known = Members::new();
            for (name, value) in members.into_iter().filter(|(_, value)| !value.is_null()) {
                let Some(name) = NAMES.iter().find(|known| known.eq_ignore_ascii_case(&name)) else {
                    continue;
                };
                let (fits, ty) = match *name {
                    "tolerationSeconds" => (value.is_i64(), "int64"),
                    "operator" => (value.is_string(), "core.TolerationOperator"),
                    "effect" => (value.is_string(), "core.TaintEffect"),
                    _ => (value.is_string(), "string"),
                };
                if !fits {
                    let field = format!("{}{}", name[..1].to_ascii_uppercase(), &name[1..]);
                    return Err(not_a(&value, &format!("struct field Toleration.{field} of type {ty}")));
                }
                known.insert((*name).to_string(), value);
            }
            Ok(known)
        }
        other => Err(not_a(&other, "value of type core.Toleration")),
    };
    items.into_iter().map(toleration).collect()
}

/// What seccomp profiles were named by before there was a field.
fn seccomp(annotations: &Members, at: &Path<'_>, causes: &mut Causes) {
    let is_of_seccomp = |key: &str| key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER);
    for (key, profile) in annotations.iter().filter(|(key, _)| is_of_seccomp(key)) {
        let (at, profile) = (at.child(key), profile.as_str().unwrap_or_default());
        match profile.strip_prefix(LOCALHOST) {
            Some(path) => descending_path(path, &at, causes),
            None if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
            None => causes.invalid(&at, profile, "must be a valid seccomp profile"),
        }
    }
}

const LOCALHOST: &str = "localhost/";

/// Where a new pod or a container has both an annotation and a field, these say the same.
pub fn seccomp_fields_match(annotations: &Members, spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    if !annotations.keys().any(|key| key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER)) {
        return;
    }
    if let Some(said) = text_opt(annotations, SECCOMP_POD) {
        seccomp_field_matches(said, spec, at, causes);
    }
    each_container(spec, at, |container, at| {
        if let Some(said) = text_opt(annotations, &format!("{SECCOMP_CONTAINER}{}", text(container, "name")))
        {
            seccomp_field_matches(said, container, at, causes);
        }
    });
}

fn seccomp_field_matches(said: &str, owner: &Members, at: &Path<'_>, causes: &mut Causes) {
    let Some(profile) = child(child_or_empty(owner, "securityContext"), "seccompProfile") else { return };
    let at = at.child("securityContext");
    let at = at.child("seccompProfile");
    let is_same = match text(profile, "type") {
        "Unconfined" => said == "unconfined",
        "RuntimeDefault" => matches!(said, "runtime/default" | "docker/default"),
        "Localhost" => match said.strip_prefix(LOCALHOST) {
            Some(path) if text_opt(profile, "localhostProfile") != Some(path) => {
                let detail = "seccomp profile in annotation and field must match";
                return causes.forbidden(&at.child("localhostProfile"), detail);
            }
            path => path.is_some(),
        },
        _ => true,
    };
    if !is_same {
        causes.forbidden(&at.child("type"), "seccomp type in annotation and field must match");
    }
}
