//! The table of built-in kinds: one row of functions and flags each.
//!
//! In: a group and a kind. Out: its [`Rules`]; [`NONE`] for one that has none of its own. Never: a rule
//! itself; those are in one file a group.

use super::rule::{NONE, Rules};
use super::{admissionregistration, apiregistration, certificates, flowcontrol, resource};
use super::{
    apps, autoscaling, batch, coordination, core, discovery, events, extensions, networking, node, policy,
    rbac, scheduling, storage,
};

static NO_RULES: Rules = NONE;

/// The rules of a built-in kind.
pub fn of(group: &str, kind: &str) -> &'static Rules {
    let rows: &[Rules] = match group {
        "" => core::KINDS,
        "apps" => apps::KINDS,
        "batch" => batch::KINDS,
        "admissionregistration.k8s.io" => admissionregistration::KINDS,
        "certificates.k8s.io" => certificates::KINDS,
        "resource.k8s.io" => resource::KINDS,
        "rbac.authorization.k8s.io" => rbac::KINDS,
        "coordination.k8s.io" => coordination::KINDS,
        "scheduling.k8s.io" => scheduling::KINDS,
        "node.k8s.io" => node::KINDS,
        "networking.k8s.io" => networking::KINDS,
        "policy" => policy::KINDS,
        "autoscaling" => autoscaling::KINDS,
        "storage.k8s.io" => storage::KINDS,
        "discovery.k8s.io" => discovery::KINDS,
        "events.k8s.io" => events::KINDS,
        "apiextensions.k8s.io" => extensions::KINDS,
        "apiregistration.k8s.io" => apiregistration::KINDS,
        "flowcontrol.apiserver.k8s.io" => flowcontrol::KINDS,
        _ => &[],
    };
    // Few: the kinds of a group.
    rows.iter().find(|row| row.kind == kind).unwrap_or(&NO_RULES)
}
