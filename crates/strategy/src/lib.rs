//! The rules around a write, a kind's strategy: what the server fills in, keeps, refuses, and does on
//! deletion.
//!
//! In: objects as `serde_json::Value`s that the codec made canonical, and for an update the stored one. Out:
//! the object changed in place; causes in kube-apiserver's order and words. Never: IO, a store, admission.
//!
//! A create goes [`defaults`], [`fill_system_fields`], [`prepare_create`], [`validate_create`]. An update
//! goes [`defaults`], [`prepare_update`], [`validate_update`]. The kinds are rows in [`rules`], one file a
//! group.
//!
//! Source: kubernetes v1.36.3 `pkg/registry/**/strategy.go`, `pkg/apis/**`; apiserver v0.36.3 `pkg/registry/rest`.

mod address;
mod admissionregistration;
mod apiregistration;
mod apps;
mod authorization;
mod autoscaling;
mod batch;
mod certificates;
mod conditions;
pub mod convert;
mod coordination;
mod core;
mod counts;
mod custom;
mod deletion;
mod discovery;
mod events;
pub mod eviction;
mod extensions;
mod field;
pub mod flowcontrol;
mod format;
mod internal;
mod kind;
mod lifecycle;
mod limits;
mod meta;
mod names;
mod networking;
mod node;
mod pem;
mod policy;
mod privileged;
mod rbac;
mod resource;
mod reviews;
mod rule;
mod rules;
mod scale;
mod scheduling;
mod selector;
mod storage;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod typed;
pub mod value;
mod warnings;

use forebay_apimachinery::Cause;
use serde_json::Value;

pub use authorization::evaluation_error;
pub use certificates::{requested_common_name, subject_restriction};
pub use core::binding::{BindingError, bind};
pub use core::pod::qos::class as pod_class;
pub use core::pod::resources::is_extended as is_extended_resource;
pub use core::service_allocation as services;
pub use deletion::{
    CLEANUP_FINALIZER, DeleteOptions, Deletion, Propagation, may_finish_deletion, start_definition_deletion,
    start_deletion, start_namespace_deletion,
};
pub use eviction::{Refusal, Standing};
pub use field::Causes;
pub use kind::GroupKind;
pub use meta::{ANNOTATIONS_BYTES_MAX, dedup_owner_references};
pub use names::{NameRule, generate_name};
pub use privileged::Privileged;
pub use resource::{ADMIN_ACCESS, wants_admin_access};
pub use reviews::{default_review, validate_review};
pub use rule::{Context, Flags};
pub use scale::{ScaleError, apply_scale, scale_to_update, to_scale};
pub use scheduling::SYSTEM_PRIORITY_CLASSES;

use rule::Update;
use value::{Members, child_made, child_mut, child_or_empty};

/// Fills in what a client may leave out, as the decoder of the kind's version does. Custom resources have
/// their schema.
pub fn defaults(kind: &GroupKind<'_>, object: &mut Value) {
    if let (None, Some(members)) = (kind.custom, object.as_object_mut()) {
        (kind.rules().defaults)(members);
    }
}

/// Puts in the labels that an object has by default and is given in the end only; whether there are some.
/// They are for a look at it: [`take_lent_labels`] takes them out again.
pub fn lend_labels(kind: &GroupKind<'_>, object: &mut Value) -> bool {
    let Some(members) = object.as_object_mut().filter(|_| kind.custom.is_none()) else { return false };
    let labels = (kind.rules().labels_by_default)(members);
    let is_lent = labels.is_some();
    if let Some(labels) = labels {
        child_made(members, "metadata").insert("labels".into(), Value::Object(labels));
    }
    is_lent
}

/// Takes out what [`lend_labels`] put in, if it did.
pub fn take_lent_labels(object: &mut Value, is_lent: bool) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut).filter(|_| is_lent) {
        metadata.remove("labels");
    }
}

/// Gives a new object its uid and creationTimestamp, and takes away what only the server may set.
pub fn fill_system_fields(object: &mut Value, context: &Context<'_>, uid: &str) {
    if let Some(members) = object.as_object_mut() {
        meta::fill_system_fields(child_made(members, "metadata"), context.now, uid);
    }
}

/// Makes a new object what it is to be stored as: its status is the server's, its generation begins. Returns
/// what the client is told of what that changes.
pub fn prepare_create(kind: &GroupKind<'_>, object: &mut Value, context: &Context<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(members) = object.as_object_mut() else { return warnings };
    drop_namespace_unless_namespaced(kind, members);
    match kind.custom {
        Some(custom) => custom::prepare_create(custom, members),
        None => {
            let rules = kind.rules();
            (rules.warnings_as_sent)(members, &mut warnings);
            (rules.prepare_create)(members, context);
        }
    }
    warnings
}

/// Makes `new` what it is to be stored as in the place of `old`: a subresource changes only its part, the
/// generation goes up when the desired state changes, and what only the server writes stays.
pub fn prepare_update(
    kind: &GroupKind<'_>,
    subresource: Option<&str>,
    new: &mut Value,
    old: &Value,
    context: &Context<'_>,
) {
    let (Some(members), Some(old)) = (new.as_object_mut(), old.as_object()) else { return };
    let old_meta = child_or_empty(old, "metadata");
    drop_namespace_unless_namespaced(kind, members);
    meta::keep_generation(child_made(members, "metadata"), old_meta);
    let update = Update { subresource, old };
    match kind.custom {
        Some(custom) => custom::prepare_update(custom, members, &update),
        None => (kind.rules().prepare_update)(members, &update, context),
    }
    meta::keep_system_fields(child_made(members, "metadata"), old_meta);
}

/// What stands outside of namespaces is in none, whatever the client sent.
fn drop_namespace_unless_namespaced(kind: &GroupKind<'_>, object: &mut Members) {
    if !kind.namespaced()
        && let Some(meta) = child_mut(object, "metadata")
    {
        meta.remove("namespace");
    }
}

/// What is wrong with a new object; nothing when it may be stored. A custom resource's schema is not looked
/// at.
pub fn validate_create(kind: &GroupKind<'_>, object: &Value, privileged: Privileged) -> Vec<Cause> {
    let mut causes = Causes::under(privileged);
    let Some(members) = object.as_object() else { return Vec::new() };
    let meta = child_or_empty(members, "metadata");
    let mut validated = true;
    match kind.custom {
        Some(custom) => custom::validate_create(custom, members, &mut causes),
        None => {
            let rules = kind.rules();
            validated = rules.name.is_some();
            match rules.name {
                Some(rule) if rules.knows_finalizers => {
                    meta::validate_built_in_create(meta, rules.namespaced, rule, &mut causes);
                }
                Some(rule) => meta::validate_meta_create(meta, rules.namespaced, rule, &mut causes),
                None => {}
            }
            (rules.validate_create)(members, &mut causes);
        }
    }
    // What passed a rule for names of its own passes the common one.
    if causes.is_empty() && !validated {
        meta::validate_meta_create(meta, kind.namespaced(), NameRule::PathSegment, &mut causes);
    }
    causes.into_vec()
}

/// What is wrong with `new` in the place of `old`; nothing when it may be stored. A custom resource's schema
/// is not looked at.
pub fn validate_update(
    kind: &GroupKind<'_>,
    subresource: Option<&str>,
    new: &Value,
    old: &Value,
    privileged: Privileged,
) -> Vec<Cause> {
    let mut causes = Causes::under(privileged);
    let (Some(members), Some(old)) = (new.as_object(), old.as_object()) else { return Vec::new() };
    let (new_meta, old_meta) = (child_or_empty(members, "metadata"), child_or_empty(old, "metadata"));
    meta::validate_meta_create(new_meta, kind.namespaced(), NameRule::PathSegment, &mut causes);
    meta::validate_meta_update(new_meta, old_meta, &mut causes);
    let update = Update { subresource, old };
    match kind.custom {
        Some(_) => custom::validate_update(members, &update, &mut causes),
        None => (kind.rules().validate_update)(members, &update, &mut causes),
    }
    causes.into_vec()
}

/// What is wrong with what the scale of a custom resource reads of it: it is told after what its schema says.
///
/// - `subresource`: the one that is written.
pub fn scale_causes(kind: &GroupKind<'_>, subresource: Option<&str>, object: &Value) -> Vec<Cause> {
    let mut causes = Causes::default();
    if let (Some(custom), Some(members)) = (kind.custom, object.as_object()) {
        custom::validate_scale(custom, members, subresource == Some("status"), &mut causes);
    }
    causes.into_vec()
}

/// What a client is told of an object that is accepted as it is.
///
/// - `update`: the subresource and the stored object, if there is one.
pub fn warnings(kind: &GroupKind<'_>, object: &Value, update: Option<(Option<&str>, &Value)>) -> Vec<String> {
    let mut warnings = Vec::new();
    let update = update.and_then(|(subresource, old)| Some(Update { subresource, old: old.as_object()? }));
    if let Some(members) = object.as_object() {
        match kind.custom {
            Some(_) => custom::warnings(members, update.as_ref(), &mut warnings),
            None => (kind.rules().warnings)(members, update.as_ref(), &mut warnings),
        }
    }
    warnings
}
