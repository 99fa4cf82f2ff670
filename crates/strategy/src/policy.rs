//! The kinds of `policy`.
//!
//! In: a PodDisruptionBudget. Out: causes. Never: whether a pod may be evicted.
//!
//! Source: kubernetes v1.36.3 `registry/policy/poddisruptionbudget`, `apis/policy/validation`.

use super::apps::template::{at_most_all, int_or_percent, not_negative};
use super::conditions;
use super::field::{Causes, Path};
use super::internal;
use super::lifecycle::{begin, status_apart};
use super::rule::{Flags, NONE, Rules, Update};
use super::selector;
use super::value::{Members, child, child_or_empty, text_opt};

pub const KINDS: &[Rules] = &[Rules {
    kind: "PodDisruptionBudget",
    prepare_create: begin,
    prepare_update: status_apart,
    validate_create: validate,
    validate_update,
    flags: Flags { unconditional_update: false, ..Flags::PLAIN },
    ..NONE
}];

fn validate(budget: &Members, causes: &mut Causes) {
    const BOUNDS: [&str; 2] = ["minAvailable", "maxUnavailable"];
    const POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];
    let (spec, at) = (child_or_empty(budget, "spec"), Path::root("spec"));
    if BOUNDS.iter().all(|name| spec.contains_key(*name)) {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        causes.invalid(&at, internal::shown("PodDisruptionBudgetSpec", spec), detail);
    }
    for name in BOUNDS {
        int_or_percent(spec.get(name), &at.child(name), causes);
        at_most_all(spec.get(name), &at.child(name), causes);
    }
    if let Some(of) = child(spec, "selector") {
        selector::validate(of, &at.child("selector"), causes);
    }
    let policy = text_opt(spec, "unhealthyPodEvictionPolicy");
    if let Some(policy) = policy.filter(|policy| !POLICIES.contains(policy)) {
        causes.not_supported(&at.child("unhealthyPodEvictionPolicy"), policy, &POLICIES);
    }
}

fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    if !update.is_status() {
        return validate(new, causes);
    }
    let (status, at) = (child_or_empty(new, "status"), Path::root("status"));
    conditions::validate(status, &at.child("conditions"), causes);
    for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        not_negative(status, name, &at, causes);
    }
}
