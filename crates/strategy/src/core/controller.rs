//! ReplicationControllers.
//!
//! In: a ReplicationController. Out: defaults, causes. Never: a ReplicaSet's rules, whose selector is of
//! another form.
//!
//! Source: kubernetes v1.36.3 `registry/core/replicationcontroller`, `apis/core/{v1,validation}`.

use serde_json::Value;

use super::pod;
use crate::counts::{not_negative, replica_counts};
use crate::field::{Causes, Path};
use crate::meta::validate_built_in_update;
use crate::rule::Update;
use crate::value::{Members, child, child_made, child_or_empty, default, entries, text};
use crate::warnings::{is_of_interest, of_template, of_workload};

const SPEC: Path<'static> = Path::root("spec");

pub fn defaults(controller: &mut Members) {
    let spec = child_made(controller, "spec");
    default(spec, "replicas", 1);
    let Some(template) = spec.get_mut("template").and_then(Value::as_object_mut) else { return };
    pod::defaults::template(template);
    let Some(labels) =
        child(child_or_empty(template, "metadata"), "labels").filter(|labels| !labels.is_empty())
    else {
        return;
    };
    let labels = Value::Object(labels.clone());
    if child_or_empty(spec, "selector").is_empty() {
        spec.insert("selector".into(), labels.clone());
    }
    let meta = child_made(controller, "metadata");
    if child_or_empty(meta, "labels").is_empty() {
        meta.insert("labels".into(), labels);
    }
}

pub fn validate_create(controller: &Members, causes: &mut Causes) {
    let spec = child_or_empty(controller, "spec");
    not_negative(spec, "minReadySeconds", &SPEC, causes);
    let selector = child_or_empty(spec, "selector");
    if selector.is_empty() {
        causes.required(&SPEC.child("selector"), "");
    }
    not_negative(spec, "replicas", &SPEC, causes);
    let at = SPEC.child("template");
    let Some(template) = child(spec, "template") else { return causes.required(&at, "") };
    let labels = child(child_or_empty(template, "metadata"), "labels");
    let selected =
        |(key, value)| labels.is_some_and(|labels| text(labels, key) == value && labels.contains_key(key));
    if !entries(spec, "selector").all(selected) {
        pod::template_not_selected(template, &at, causes);
    }
    pod::validate_template(template, &at, causes);
    pod::only_always(template, "ReplicationController", &at, causes);
}

/// Of an update upstream tells what is to be said of the template that goes.
pub fn warnings(controller: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    match update {
        None => of_workload(controller, None, out),
        Some(update) if is_of_interest(controller, Some(update)) => {
            of_template(update.old, None, out);
        }
        Some(_) => {}
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    if update.is_status() {
        validate_status(child_or_empty(new, "status"), causes);
    } else {
        validate_create(new, causes);
    }
}

fn validate_status(status: &Members, causes: &mut Causes) {
    const COUNTS: [&str; 5] =
        ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    replica_counts(status, &COUNTS, "fullyLabeledReplicas", causes);
}
