//! The kinds of `scheduling.k8s.io`.
//!
//! In: a PriorityClass. Out: defaults, causes. Never: a pod's priority; that is admission.
//!
//! Source: kubernetes v1.36.3 `registry/scheduling/priorityclass`, `apis/scheduling/{v1,validation}`.

use super::field::{Causes, Path};
use super::lifecycle::first_generation;
use super::meta::{IMMUTABLE, validate_built_in_update};
use super::names::NameRule;
use super::rule::{NONE, Rules, Update};
use super::value::{Members, child_or_empty, default, int, is_true, same_member, text, text_opt};

/// The classes that exist from the start, with their values and what is said of them.
pub const SYSTEM_PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];
const SYSTEM_PREFIX: &str = "system-";
const VALUE_MAX: i64 = 1_000_000_000;

pub const KINDS: &[Rules] = &[Rules {
    kind: "PriorityClass",
    namespaced: false,
    name: Some(NameRule::Subdomain),
    defaults: |class| default(class, "preemptionPolicy", "PreemptLowerPriority"),
    prepare_create: first_generation,
    validate_create,
    validate_update,
    ..NONE
}];

fn validate_create(class: &Members, causes: &mut Causes) {
    const POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];
    let name = text(child_or_empty(class, "metadata"), "name");
    if name.starts_with(SYSTEM_PREFIX) {
        if let Some(why) = not_of_the_system(name, class) {
            let detail = format!(
                "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {why}"
            );
            causes.forbidden(&Path::root("metadata").child("name"), &detail);
        }
    } else if int(class, "value").unwrap_or(0) > VALUE_MAX {
        let detail = format!("maximum allowed value of a user defined priority is {VALUE_MAX}");
        causes.forbidden(&Path::root("value"), &detail);
    }
    match text_opt(class, "preemptionPolicy") {
        Some("") => causes.required(&Path::root("preemptionPolicy"), ""),
        Some(policy) if !POLICIES.contains(&policy) => {
            causes.not_supported(&Path::root("preemptionPolicy"), policy, &POLICIES);
        }
        _ => {}
    }
}

/// Why a class is none of the system's own.
fn not_of_the_system(name: &str, class: &Members) -> Option<String> {
    match SYSTEM_PRIORITY_CLASSES.iter().find(|(known, ..)| *known == name) {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, value, _)) if int(class, "value").unwrap_or(0) != *value => {
            Some(format!("value of {name} PriorityClass must be {value}"))
        }
        Some(_) if is_true(class, "globalDefault") => {
            Some(format!("globalDefault of {name} PriorityClass must be false"))
        }
        Some(_) => None,
    }
}

fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    if int(new, "value").unwrap_or(0) != int(old, "value").unwrap_or(0) {
        causes.forbidden(&Path::root("value"), "may not be changed in an update.");
    }
    if !same_member(new, old, "preemptionPolicy") {
        causes.invalid(&Path::root("preemptionPolicy"), new.get("preemptionPolicy"), IMMUTABLE);
    }
}
