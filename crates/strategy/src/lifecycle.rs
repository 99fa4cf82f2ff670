//! What most strategies do around a write, in the same few moves: status apart from spec, and the generation.
//!
//! In: the object to be stored and the stored one. Out: the former changed in place. Never: decides which
//! kind does what.

use serde_json::Value;

use super::rule::{Context, Update};
use super::value::{Members, child_made, child_or_empty, int, same_besides, same_member, set, take_over};

/// A new object's status is empty.
pub fn reset_status(object: &mut Members, _: &Context<'_>) {
    set(object, "status", Some(Value::Object(Members::new())));
}

/// A new object's status is empty, and its generation 1.
pub fn begin(object: &mut Members, context: &Context<'_>) {
    reset_status(object, context);
    first_generation(object, context);
}

/// A new object's generation is 1.
pub fn first_generation(object: &mut Members, _: &Context<'_>) {
    set(child_made(object, "metadata"), "generation", Some(1.into()));
}

/// The resource keeps its status, the status subresource its spec. The generation goes up when the spec
/// changes.
pub fn status_apart(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart_without_generation(new, update, context);
    if !update.is_status() && !same_member(new, update.old, "spec") {
        bump_generation(new, update.old);
    }
}

/// The resource keeps its status, the status subresource its spec.
pub fn status_apart_without_generation(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    take_over(new, update.old, if update.is_status() { "spec" } else { "status" });
}

/// One more than the stored object's generation.
pub fn bump_generation(new: &mut Members, old: &Members) {
    let generation = int(child_or_empty(old, "metadata"), "generation").unwrap_or(0);
    set(child_made(new, "metadata"), "generation", Some((generation + 1).into()));
}

/// Keeps of the metadata what a subresource may not change (`metav1.ResetObjectMetaForStatus`).
pub fn reset_meta(new: &mut Members, old: &Members) {
    keep_meta(
        new,
        old,
        &[
            "deletionTimestamp",
            "generation",
            "selfLink",
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
        ],
    );
}

/// Keeps these members of the metadata.
pub fn keep_meta(new: &mut Members, old: &Members, names: &[&str]) {
    let old = child_or_empty(old, "metadata");
    let new = child_made(new, "metadata");
    for name in names {
        take_over(new, old, name);
    }
}

/// Whether everything but metadata means the same.
pub fn same_but_meta(new: &Members, old: &Members) -> bool {
    same_besides(new, old, &["metadata", "apiVersion", "kind"])
}
