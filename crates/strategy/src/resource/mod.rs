//! The kinds of `resource.k8s.io`.
//!
//! In: DeviceClasses, ResourceClaims and their templates, ResourceSlices. Out: rows for
//! [`rules`](super::rules). Never: allocates a device, evaluates an expression.
//!
//! Source: kubernetes v1.36.3 `registry/resource`, `apis/resource/{v1,validation}`. What stands behind a gate that is off
//! in v1.36 is dropped.

mod admin;
mod capacity;
mod claim;
mod class;
mod config;
mod device;
mod expression;
mod lists;
mod names;
mod slice;
mod status;
mod template;
#[cfg(test)]
mod tests;

pub use admin::{LABEL as ADMIN_ACCESS, wanted as wants_admin_access};

use super::lifecycle::reset_status;
use super::names::NameRule;
use super::rule::{Flags, NONE, Rules};

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "DeviceClass",
        namespaced: false,
        name: Some(NameRule::LongName),
        prepare_create: super::lifecycle::first_generation,
        prepare_update: class::prepare_update,
        validate_create: class::validate,
        validate_update: class::validate_update,
        flags: Flags::RETURNED,
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
        flags: Flags::RETURNED,
        ..NONE
    },
    Rules {
        kind: "ResourceClaimTemplate",
        name: Some(NameRule::Subdomain),
        defaults: template::defaults,
        validate_create: template::validate,
        validate_update: template::validate_update,
        flags: Flags::RETURNED,
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
        flags: Flags::RETURNED,
        ..NONE
    },
];
