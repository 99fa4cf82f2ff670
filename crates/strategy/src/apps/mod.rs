//! The kinds of `apps`.
//!
//! In: objects. Out: rows for [`rules`](super::rules). Never: another group's kinds.

mod controller_revision;
mod daemonset;
mod deployment;
mod replicaset;
mod statefulset;
pub mod template;
#[cfg(test)]
mod tests;

use super::lifecycle::{begin, status_apart};
use super::names::NameRule;
use super::rule::{NONE, Rules};
use super::warnings;

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "ReplicaSet",
        name: Some(NameRule::Subdomain),
        defaults: replicaset::defaults,
        prepare_create: begin,
        prepare_update: status_apart,
        validate_create: replicaset::validate_create,
        validate_update: replicaset::validate_update,
        warnings: warnings::of_workload,
        ..NONE
    },
    Rules {
        kind: "Deployment",
        name: Some(NameRule::Subdomain),
        defaults: deployment::defaults,
        prepare_create: begin,
        prepare_update: deployment::prepare_update,
        validate_create: deployment::validate_create,
        validate_update: deployment::validate_update,
        warnings: warnings::of_workload,
        ..NONE
    },
    Rules {
        kind: "StatefulSet",
        name: Some(NameRule::Label),
        defaults: statefulset::defaults,
        prepare_create: statefulset::prepare_create,
        prepare_update: statefulset::prepare_update,
        validate_create: statefulset::validate_create,
        validate_update: statefulset::validate_update,
        warnings: statefulset::warn,
        ..NONE
    },
    Rules {
        kind: "DaemonSet",
        name: Some(NameRule::Subdomain),
        defaults: daemonset::defaults,
        prepare_create: daemonset::prepare_create,
        prepare_update: daemonset::prepare_update,
        validate_create: daemonset::validate_create,
        validate_update: daemonset::validate_update,
        warnings: daemonset::warnings,
        ..NONE
    },
    Rules {
        kind: "ControllerRevision",
        name: Some(NameRule::Subdomain),
        validate_create: controller_revision::validate_create,
        validate_update: controller_revision::validate_update,
        ..NONE
    },
];
