//! The kinds of `coordination.k8s.io`.
//!
//! In: a Lease. Out: causes. Never: who leads.
//!
//! Source: kubernetes v1.36.3 `registry/coordination`, `apis/coordination/validation`.

use super::field::{Causes, Path};
use super::meta::validate_meta_update;
use super::names::NameRule;
use super::rule::{Context, Flags, NONE, Rules, Update};
use super::value::{Members, child_mut, child_or_empty, int};

pub const KINDS: &[Rules] = &[Rules {
    kind: "Lease",
    name: Some(NameRule::Subdomain),
    knows_finalizers: false,
    prepare_create: |lease, _| drop_gated(lease, None),
    prepare_update,
    validate_create,
    validate_update,
    flags: Flags { unconditional_update: false, ..Flags::CREATED_ON_UPDATE },
    ..NONE
}];

fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    drop_gated(new, Some(child_or_empty(update.old, "spec")));
}

/// Coordinated leader election is behind a gate that is off.
fn drop_gated(lease: &mut Members, old: Option<&Members>) {
    let Some(spec) = child_mut(lease, "spec") else { return };
    for name in ["strategy", "preferredHolder"] {
        if !old.is_some_and(|old| old.contains_key(name)) {
            spec.remove(name);
        }
    }
}

fn validate_create(lease: &Members, causes: &mut Causes) {
    let (spec, at) = (child_or_empty(lease, "spec"), Path::root("spec"));
    if let Some(seconds) = int(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        causes.invalid(&at.child("leaseDurationSeconds"), seconds, "must be greater than 0");
    }
    if let Some(count) = int(spec, "leaseTransitions").filter(|count| *count < 0) {
        causes.invalid(&at.child("leaseTransitions"), count, "must be greater than or equal to 0");
    }
}

fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_meta_update(child_or_empty(new, "metadata"), child_or_empty(update.old, "metadata"), causes);
    validate_create(new, causes);
}
