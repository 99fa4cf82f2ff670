//! The kinds of `storage.k8s.io`.
//!
//! In: objects. Out: rows for [`rules`](super::rules). Never: another group's kinds; touches a volume.
//!
//! Source: kubernetes v1.36.3 `registry/storage`, `apis/storage/{v1,validation}`, `api/storage`.

mod attachment;
mod capacity;
mod class;
mod driver;
mod node;
#[cfg(test)]
mod tests;

use super::lifecycle::reset_status;
use super::names::NameRule;
use super::rule::{Flags, NONE, Rules};

const GUARDED: Flags = Flags { unconditional_update: false, ..Flags::PLAIN };
const GUARDED_AND_RETURNED: Flags = Flags { unconditional_update: false, ..Flags::RETURNED };

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "StorageClass",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        defaults: class::defaults,
        validate_create: class::validate,
        validate_update: class::validate_update,
        warnings: |class, _, warnings| class::warnings(class, warnings),
        flags: Flags::RETURNED,
        ..NONE
    },
    Rules {
        kind: "VolumeAttributesClass",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        validate_create: class::validate_attributes,
        validate_update: class::validate_attributes_update,
        flags: Flags::RETURNED,
        ..NONE
    },
    Rules {
        kind: "VolumeAttachment",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        defaults: attachment::defaults,
        prepare_create: reset_status,
        prepare_update: attachment::prepare_update,
        validate_create: attachment::validate,
        validate_update: attachment::validate_update,
        flags: GUARDED_AND_RETURNED,
        ..NONE
    },
    Rules {
        kind: "CSIDriver",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        defaults: driver::defaults,
        prepare_create: |driver, _| driver::drop_gated(driver, None),
        prepare_update: driver::prepare_update,
        validate_create: driver::validate,
        validate_update: driver::validate_update,
        warnings: driver::warnings,
        flags: GUARDED_AND_RETURNED,
        ..NONE
    },
    Rules {
        kind: "CSINode",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        validate_create: node::validate,
        validate_update: node::validate_update,
        flags: GUARDED_AND_RETURNED,
        ..NONE
    },
    Rules {
        kind: "CSIStorageCapacity",
        name: Some(NameRule::Subdomain),
        validate_create: capacity::validate,
        validate_update: capacity::validate_update,
        warnings: |capacity, _, warnings| capacity::warnings(capacity, warnings),
        flags: GUARDED,
        ..NONE
    },
];
