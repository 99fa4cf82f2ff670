//! What a pod is stored as: its status, its generation, and what each of its subresources may change.
//!
//! In: the pod to be stored, and the stored one. Out: the former changed in place. Never: refuses anything.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/strategy.go`.

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use super::affinity;
use super::app_armor;
use super::qos;
use crate::lifecycle::{bump_generation, first_generation, reset_meta};
use crate::rule::{Context, Update};
use crate::value::{
    Members, child_made, child_or_empty, int, list, list_mut, objects, objects_mut, same_member, set,
    take_over, text,
};

/// A new pod: pending, of a class that stays.
pub fn prepare_create(pod: &mut Members, context: &Context<'_>) {
    first_generation(pod, context);
    let spec = child_or_empty(pod, "spec");
    let mut status = Members::new();
    status.insert("phase".into(), "Pending".into());
    status.insert("qosClass".into(), qos::class(spec).into());
    if !list(spec, "schedulingGates").is_empty() {
        let gated = json!({
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastTransitionTime": context.now,
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        status.insert("conditions".into(), json!([gated]));
    }
    set(pod, "status", Some(Value::Object(status)));
    affinity::merge_label_keys(pod);
    app_armor::to_fields(pod);
}

/// A pod in the place of another.
pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    let old = update.old;
    match update.subresource {
        Some("status") => return status(new, old),
        Some("ephemeralcontainers") => ephemeral_containers(new, old),
        Some("resize") => resize(new, old),
        _ => take_over(new, old, "status"),
    }
    if !same_member(new, old, "spec") {
        bump_generation(new, old);
    }
}

fn status(new: &mut Members, old: &Members) {
    take_over(new, old, "spec");
    let (meta, old_meta) = (child_made(new, "metadata"), child_or_empty(old, "metadata"));
    meta.remove("deletionTimestamp");
    take_over(meta, old_meta, "ownerReferences");
    let (status, old_status) = (child_made(new, "status"), child_or_empty(old, "status"));
    if text(status, "qosClass").is_empty() {
        take_over(status, old_status, "qosClass");
    }
    keep_observed_generations(status, old_status);
    drop_disabled(status);
}

/// What features that are off by default would say.
fn drop_disabled(status: &mut Members) {
    status.remove("nodeAllocatableResourceClaimStatuses");
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        for container in objects_mut(status, list) {
            for mount in objects_mut(container, "volumeMounts") {
                mount.remove("volumeStatus");
            }
        }
    }
}

/// Older kubelets do not know the field, and must not clear it.
fn keep_observed_generations(status: &mut Members, old: &Members) {
    let observed = |object: &Members| int(object, "observedGeneration").unwrap_or(0);
    if observed(status) == 0 {
        take_over(status, old, "observedGeneration");
    }
    // type -> those before that are not taken yet, in order
    let mut before: HashMap<&str, VecDeque<&Members>> = HashMap::new();
    for condition in objects(old, "conditions") {
        before.entry(text(condition, "type")).or_default().push_back(condition);
    }
    for condition in list_mut(status, "conditions").iter_mut().filter_map(Value::as_object_mut) {
        let like = before.get_mut(text(condition, "type"));
        let Some(before) = like.and_then(VecDeque::pop_front) else { continue };
        if observed(condition) == 0 {
            take_over(condition, before, "observedGeneration");
        }
    }
}

fn ephemeral_containers(new: &mut Members, old: &Members) {
    let added = child_made(new, "spec").remove("ephemeralContainers");
    take_over(new, old, "spec");
    take_over(new, old, "status");
    reset_meta(new, old);
    set(child_made(new, "spec"), "ephemeralContainers", added);
}

/// Takes over all but resources and how they are resized; when containers come, go or change their names or
/// order, nothing is taken over and validation refuses it.
fn resize(new: &mut Members, old: &Members) {
    let wanted = child_or_empty(new, "spec").clone();
    let old_spec = child_or_empty(old, "spec");
    let lists = ["containers", "initContainers"];
    // Few: two lists.
    if lists.iter().any(|name| list(&wanted, name).len() != list(old_spec, name).len()) {
        return;
    }
    take_over(new, old, "spec");
    take_over(new, old, "status");
    reset_meta(new, old);
    let spec = child_made(new, "spec");
    take_over(spec, &wanted, "resources");
    for name in lists {
        let same_names = objects(&wanted, name)
            .map(|c| text(c, "name"))
            .eq(objects(old_spec, name).map(|c| text(c, "name")));
        if !same_names {
            take_over(spec, &wanted, name);
            continue;
        }
        let containers = list_mut(spec, name).iter_mut().filter_map(Value::as_object_mut);
        for (container, wanted) in containers.zip(objects(&wanted, name)) {
            take_over(container, wanted, "resources");
            take_over(container, wanted, "resizePolicy");
        }
    }
}
