//! The binding of a pod to a node.
//!
//! In: a Binding, and the pod it is for. Out: the pod on its node. Never: chooses the node.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/storage`, `apis/core/validation`.

use forebay_apimachinery::Cause;
use serde_json::{Value, json};

use crate::field::{Causes, Path};
use crate::rule::Context;
use crate::value::{Members, child_made, child_or_empty, entries, list, list_mut, set, take_over, text};

/// Why a pod is not bound.
#[derive(Debug, PartialEq, Eq)]
pub enum BindingError {
    /// The body is for another pod: a bad request.
    OtherName,
    /// The body is malformed. Upstream answers 500 with the bare aggregate of these.
    Invalid(Vec<Cause>),
    /// The pod is in no state for it: a conflict on `pods/binding`, with this message.
    Conflict(String),
}

impl BindingError {
    /// What a client is told of [`BindingError::OtherName`].
    pub const OTHER_NAME: &str = "name in URL does not match name in Binding object";
}

/// Puts `pod` on the node that `binding` names, with its labels and annotations.
///
/// Preconditions on uid and resourceVersion (`metadata` of the binding) are the caller's.
///
/// # Errors
/// [`BindingError`], the pod unchanged.
pub fn bind(name: &str, binding: &Value, pod: &mut Value, context: &Context<'_>) -> Result<(), BindingError> {
    let (Some(binding), Some(pod)) = (binding.as_object(), pod.as_object_mut()) else {
        return Err(BindingError::OtherName);
    };
    if text(child_or_empty(binding, "metadata"), "name") != name {
        return Err(BindingError::OtherName);
    }
    let causes = validate(binding);
    if !causes.is_empty() {
        return Err(BindingError::Invalid(causes));
    }
    unless_taken(name, pod)?;
    let meta = child_or_empty(binding, "metadata");
    for map in ["annotations", "labels"] {
        if entries(meta, map).next().is_some() {
            let merged = child_made(child_made(pod, "metadata"), map);
            merged.extend(entries(meta, map).map(|(key, value)| (key.to_string(), value.into())));
        }
    }
    let node = text(child_or_empty(binding, "target"), "name");
    set(child_made(pod, "spec"), "nodeName", Some(node.into()));
    let status = child_made(pod, "status");
    status.remove("nominatedNodeName");
    set_scheduled(status, context.now);
    Ok(())
}

fn validate(binding: &Members) -> Vec<Cause> {
    let mut causes = Causes::default();
    let (target, at) = (child_or_empty(binding, "target"), Path::root("target"));
    if !matches!(text(target, "kind"), "" | "Node") {
        causes.not_supported(&at.child("kind"), text(target, "kind"), &["Node", "<empty>"]);
    }
    if text(target, "name").is_empty() {
        causes.required(&at.child("name"), "");
    }
    causes.into_vec()
}

fn unless_taken(name: &str, pod: &Members) -> Result<(), BindingError> {
    let conflict = |message| Err(BindingError::Conflict(message));
    let spec = child_or_empty(pod, "spec");
    if child_or_empty(pod, "metadata").contains_key("deletionTimestamp") {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = text(spec, "nodeName");
    if !node.is_empty() {
        return conflict(format!("pod {name} is already assigned to node {node:?}"));
    }
    if !list(spec, "schedulingGates").is_empty() {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}

fn set_scheduled(status: &mut Members, now: &str) {
    let mut scheduled = match json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now}) {
        Value::Object(condition) => condition,
        _ => return,
    };
    let mut known = list_mut(status, "conditions").iter_mut().filter_map(Value::as_object_mut);
    if let Some(condition) = known.find(|condition| text(condition, "type") == "PodScheduled") {
        if text(condition, "status") == "True" {
            take_over(&mut scheduled, condition, "lastTransitionTime");
        }
        *condition = scheduled;
        return;
    }
    match status.get_mut("conditions") {
        Some(Value::Array(conditions)) => conditions.push(Value::Object(scheduled)),
        _ => set(status, "conditions", Some(Value::Array(vec![Value::Object(scheduled)]))),
    }
}
