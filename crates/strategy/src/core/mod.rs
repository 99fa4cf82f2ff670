//! The kinds of the core group.
//!
//! In: objects. Out: rows for [`rules`](super::rules). Never: another group's kinds.

pub mod base64;
pub mod binding;
pub mod claim;
mod config_map;
mod controller;
pub mod endpoints;
pub mod event;
mod key_pair;
mod limit_range;
mod namespace;
mod node;
pub mod pod;
mod pod_template;
mod resource_quota;
mod secret;
mod service;
mod service_account;
pub mod service_allocation;
mod service_families;
pub mod service_rules;
#[cfg(test)]
mod tests;
pub mod volume;

pub use endpoints::PROTOCOLS;

use super::lifecycle::{begin, reset_status, status_apart, status_apart_without_generation};
use super::names::NameRule;
use super::rule::DefaultPropagation;
use super::rule::{Flags, NONE, Rules};
use super::warnings;

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "Pod",
        name: Some(NameRule::Subdomain),
        defaults: pod::defaults::pod,
        prepare_create: pod::lifecycle::prepare_create,
        prepare_update: pod::lifecycle::prepare_update,
        validate_create: pod::validate_create,
        validate_update: pod::validate_update,
        warnings_as_sent: pod::app_armor::warn,
        warnings: pod::warnings::of_pod,
        flags: Flags { graceful: true, ..Flags::RETURNED },
        ..NONE
    },
    Rules {
        kind: "Event",
        validate_create: event::validate_create,
        validate_update: event::validate_update,
        flags: Flags {
            expires: true,
            propagation: DefaultPropagation::Unsupported,
            ..Flags::CREATED_ON_UPDATE
        },
        ..NONE
    },
    Rules {
        kind: "ConfigMap",
        name: Some(NameRule::Subdomain),
        validate_create: config_map::validate_create,
        validate_update: config_map::validate_update,
        ..NONE
    },
    Rules {
        kind: "Secret",
        name: Some(NameRule::Subdomain),
        defaults: secret::defaults,
        prepare_update: secret::prepare_update,
        validate_create: secret::validate_create,
        validate_update: secret::validate_update,
        warnings: |secret, _, warnings| warnings.extend(secret::warning(secret)),
        ..NONE
    },
    Rules {
        kind: "Service",
        name: Some(NameRule::Label),
        defaults: service::defaults,
        prepare_create: service::prepare_create,
        prepare_update: service::prepare_update,
        validate_create: service::validate_create,
        validate_update: service::validate_update,
        warnings: service::warnings,
        flags: Flags { returns_deleted_object: true, ..Flags::CREATED_ON_UPDATE },
        ..NONE
    },
    Rules {
        kind: "Endpoints",
        name: Some(NameRule::Subdomain),
        defaults: endpoints::defaults,
        validate_create: endpoints::validate_create,
        validate_update: endpoints::validate_update,
        flags: Flags::CREATED_ON_UPDATE,
        ..NONE
    },
    Rules {
        kind: "Namespace",
        namespaced: false,
        name: Some(NameRule::Label),
        defaults: namespace::defaults,
        prepare_create: namespace::prepare_create,
        prepare_update: namespace::prepare_update,
        validate_create: namespace::validate_create,
        validate_update: namespace::validate_update,
        flags: Flags::RETURNED,
        ..NONE
    },
    Rules {
        kind: "Node",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        defaults: node::defaults,
        prepare_create: node::prepare_create,
        prepare_update: node::prepare_update,
        validate_create: node::validate_create,
        validate_update: node::validate_update,
        warnings: warnings::of_node,
        ..NONE
    },
    Rules {
        kind: "ServiceAccount",
        name: Some(NameRule::Subdomain),
        prepare_create: service_account::prepare_create,
        prepare_update: service_account::prepare_update,
        validate_update: service_account::validate_update,
        flags: Flags::RETURNED,
        ..NONE
    },
    Rules {
        kind: "PersistentVolumeClaim",
        name: Some(NameRule::Subdomain),
        defaults: claim::defaults,
        prepare_create: claim::prepare_create,
        prepare_update: claim::prepare_update,
        validate_create: claim::validate_create,
        validate_update: claim::validate_update,
        warnings: warnings::of_claim,
        flags: Flags::RETURNED,
        ..NONE
    },
    Rules {
        kind: "PersistentVolume",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        defaults: volume::defaults,
        prepare_create: volume::prepare_create,
        prepare_update: volume::prepare_update,
        validate_create: volume::validate_create,
        validate_update: volume::validate_update,
        warnings: warnings::of_volume,
        flags: Flags::RETURNED,
        ..NONE
    },
    Rules {
        kind: "ReplicationController",
        name: Some(NameRule::LongName),
        defaults: controller::defaults,
        prepare_create: begin,
        prepare_update: status_apart,
        validate_create: controller::validate_create,
        validate_update: controller::validate_update,
        warnings: controller::warnings,
        flags: Flags { propagation: DefaultPropagation::Orphan, ..Flags::PLAIN },
        ..NONE
    },
    Rules {
        kind: "PodTemplate",
        name: Some(NameRule::Subdomain),
        defaults: pod_template::defaults,
        prepare_create: super::lifecycle::first_generation,
        prepare_update: pod_template::prepare_update,
        validate_create: pod_template::validate_create,
        validate_update: pod_template::validate_update,
        warnings: pod_template::warnings,
        flags: Flags::RETURNED,
        ..NONE
    },
    Rules {
        kind: "LimitRange",
        name: Some(NameRule::Subdomain),
        defaults: limit_range::defaults,
        prepare_create: limit_range::prepare_create,
        validate_create: limit_range::validate_create,
        validate_update: limit_range::validate_update,
        flags: Flags::CREATED_ON_UPDATE,
        ..NONE
    },
    Rules {
        kind: "ResourceQuota",
        name: Some(NameRule::Subdomain),
        defaults: resource_quota::defaults,
        prepare_create: reset_status,
        prepare_update: status_apart_without_generation,
        validate_create: resource_quota::validate_create,
        validate_update: resource_quota::validate_update,
        flags: Flags::RETURNED,
        ..NONE
    },
];
