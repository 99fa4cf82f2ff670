//! The kinds of `apiextensions.k8s.io`.
//!
//! In: a CustomResourceDefinition. Out: what it is stored as, and its end. Never: its schema; that is validated where it is
//! understood.
//!
//! Source: apiextensions-apiserver v0.36.3 `registry/customresourcedefinition`.

use serde_json::{Value, json};

use super::Context;
use super::deletion::Deletion;
use super::lifecycle::{begin, status_apart};
use super::rules::{Flags, NONE, Rules, Update};
use super::value::{Members, child_made, child_or_empty, is_true, list_mut, objects, set, text, texts};

/// Holds a CustomResourceDefinition until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub const KINDS: &[Rules] = &[Rules {
    kind: "CustomResourceDefinition",
    namespaced: false,
    prepare_create: |definition, context| {
        begin(definition, context);
        remember_stored_version(definition);
    },
    prepare_update,
    flags: Flags { unconditional_update: false, ..Flags::PLAIN },
    ..NONE
}];

fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart(new, update, context);
    if !update.is_status() {
        remember_stored_version(new);
    }
}

/// Every version that objects were ever stored in is kept in mind.
fn remember_stored_version(definition: &mut Members) {
    let spec = child_or_empty(definition, "spec");
    let Some(version) = objects(spec, "versions").find(|version| is_true(version, "storage")) else { return };
    let name = text(version, "name").to_string();
    let status = child_made(definition, "status");
    if texts(status, "storedVersions").any(|stored| stored == name) {
        return;
    }
    match status.get_mut("storedVersions") {
        Some(Value::Array(stored)) => stored.push(name.into()),
        _ => set(status, "storedVersions", Some(json!([name]))),
    }
}

/// Begins the deletion of a definition, which goes on until its objects are gone; `None` when it has begun before, and it
/// is deleted like everything else, with [`start_deletion`](super::start_deletion).
pub fn start_definition_deletion(definition: &mut Value, now: &str) -> Option<Deletion> {
    let members = definition.as_object_mut()?;
    let meta = child_made(members, "metadata");
    if !text(meta, "deletionTimestamp").is_empty() {
        return None;
    }
    set(meta, "deletionTimestamp", Some(now.into()));
    if !texts(meta, "finalizers").any(|finalizer| finalizer == CLEANUP_FINALIZER) {
        match meta.get_mut("finalizers") {
            Some(Value::Array(finalizers)) => finalizers.push(CLEANUP_FINALIZER.into()),
            _ => set(meta, "finalizers", Some(json!([CLEANUP_FINALIZER]))),
        }
    }
    set_terminating(child_made(members, "status"), now);
    Some(Deletion::Store)
}

fn set_terminating(status: &mut Members, now: &str) {
    let terminating = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "lastTransitionTime": now,
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    let mut known = list_mut(status, "conditions").iter_mut();
    if let Some(condition) = known.find(|condition| condition["type"] == "Terminating") {
        *condition = terminating;
        return;
    }
    match status.get_mut("conditions") {
        Some(Value::Array(conditions)) => conditions.push(terminating),
        _ => set(status, "conditions", Some(json!([terminating]))),
    }
}
