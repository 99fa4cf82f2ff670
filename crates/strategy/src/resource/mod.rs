//! The kinds of `resource.k8s.io`.
//!
//! In: DeviceClasses, ResourceClaims and their templates, ResourceSlices. Out: rows for [`rules`](super::rules). Never:
//! allocates a device, compiles an expression; that one is there, and not too long, is all that is asked.
//!
//! Source: kubernetes v1.36.3 `registry/resource`, `apis/resource/{v1,validation}`. What stands behind a gate that is off
//! in v1.36 is dropped.

mod admin;
mod capacity;
mod claim;
mod class;
mod config;
mod device;
mod names;
mod slice;
mod status;
mod template;
#[cfg(test)]
mod tests;

use forebay_apimachinery::Seen;
use serde_json::Value;

pub use admin::{LABEL as ADMIN_ACCESS, wanted as wants_admin_access};

use super::field::{Causes, Path};
use super::lifecycle::reset_status;
use super::names::NameRule;
use super::rules::{NONE, Rules};
use super::value::{Members, list};

const SPEC: Path<'static> = Path::root("spec");

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "DeviceClass",
        namespaced: false,
        name: Some(NameRule::LongName),
        prepare_create: super::lifecycle::first_generation,
        prepare_update: class::prepare_update,
        validate_create: class::validate,
        validate_update: class::validate_update,
        ..NONE
    },
    Rules {
        kind: "ResourceClaim",
        name: Some(NameRule::Subdomain),
        defaults: claim::defaults,
        prepare_create: reset_status,
        prepare_update: status::prepare_update,
        validate_create: claim::validate,
        validate_update: claim::validate_update,
        ..NONE
    },
    Rules {
        kind: "ResourceClaimTemplate",
        name: Some(NameRule::Subdomain),
        defaults: template::defaults,
        validate_create: template::validate,
        validate_update: template::validate_update,
        ..NONE
    },
    Rules {
        kind: "ResourceSlice",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        prepare_create: slice::prepare_create,
        prepare_update: slice::prepare_update,
        validate_create: |new, causes| slice::validate(new, None, causes),
        validate_update: slice::validate_update,
        warnings: slice::warnings,
        ..NONE
    },
];

/// The items of a list, unless there are more than `max`: then only that is said.
fn bounded<'o>(of: &'o Members, name: &str, max: usize, at: &Path<'_>, causes: &mut Causes) -> &'o [Value] {
    let items = list(of, name);
    if items.len() > max {
        causes.too_many(&at.child(name), items.len(), max);
        return &[];
    }
    items
}

/// Says of items that their keys came before.
fn no_duplicates<'k>(keys: impl Iterator<Item = &'k str>, at: &Path<'_>, causes: &mut Causes) {
    let mut known = Seen::default();
    for (index, key) in keys.enumerate() {
        if known.again(key) {
            causes.duplicate(&at.index(index), key);
        }
    }
}
