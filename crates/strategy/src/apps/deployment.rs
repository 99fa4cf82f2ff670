//! Deployments.
//!
//! In: a Deployment. Out: defaults, its generation, causes. Never: its ReplicaSets.
//!
//! Source: kubernetes v1.36.3 `registry/apps/deployment`, `apis/apps/{v1,validation}`.

use serde_json::Value;

use super::template::{
    amount, at_most_all, int_or_percent, not_decremented, not_negative, replica_counts, same_selector,
    selector_of, template_of,
};
use crate::core::pod;
use crate::field::{BadValue, Causes, Path};
use crate::lifecycle::bump_generation;
use crate::meta::validate_built_in_update;
use crate::rule::{Context, Update};
use crate::value::{
    Members, child, child_made, child_or_empty, default, default_text, int, same_member, take_over, text,
};

const SPEC: Path<'static> = Path::root("spec");

pub fn defaults(deployment: &mut Members) {
    let spec = child_made(deployment, "spec");
    default(spec, "replicas", 1);
    let strategy = child_made(spec, "strategy");
    default_text(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child_made(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", "25%");
        default(rolling, "maxSurge", "25%");
    }
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "progressDeadlineSeconds", 600);
    pod::defaults::template(child_made(spec, "template"));
}

/// Annotations count as desired state here: the controller hands them down.
pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    let old = update.old;
    if update.is_status() {
        take_over(new, old, "spec");
        return take_over(child_made(new, "metadata"), child_or_empty(old, "metadata"), "labels");
    }
    take_over(new, old, "status");
    let annotated =
        same_member(child_or_empty(new, "metadata"), child_or_empty(old, "metadata"), "annotations");
    if !annotated || !same_member(new, old, "spec") {
        bump_generation(new, old);
    }
}

pub fn validate_create(deployment: &Members, causes: &mut Causes) {
    let spec = child_or_empty(deployment, "spec");
    not_negative(spec, "replicas", &SPEC, causes);
    selector_of(spec, &SPEC, "empty selector is invalid for deployment", causes);
    template_of(spec, &SPEC, "invalid label selector", "ReplicaSet", causes);
    strategy(child_or_empty(spec, "strategy"), causes);
    not_negative(spec, "minReadySeconds", &SPEC, causes);
    not_negative(spec, "revisionHistoryLimit", &SPEC, causes);
    if let Some(seconds) = int(spec, "progressDeadlineSeconds") {
        not_negative(spec, "progressDeadlineSeconds", &SPEC, causes);
        if seconds <= int(spec, "minReadySeconds").unwrap_or(0) {
            let at = SPEC.child("progressDeadlineSeconds");
            causes.invalid(&at, seconds, "must be greater than minReadySeconds");
        }
    }
}

fn strategy(strategy: &Members, causes: &mut Causes) {
    let at = SPEC.child("strategy");
    match (text(strategy, "type"), child(strategy, "rollingUpdate")) {
        ("Recreate", Some(_)) => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            causes.forbidden(&at.child("rollingUpdate"), detail);
        }
        ("Recreate", None) => {}
        ("RollingUpdate", Some(rolling)) => rolling_update(rolling, &at.child("rollingUpdate"), causes),
        ("RollingUpdate", None) => {
            causes.required(&at.child("rollingUpdate"), "this should be defaulted and never be nil");
        }
        _ => causes.not_supported(&at, strategy_shown(strategy), &["Recreate", "RollingUpdate"]),
    }
}

fn rolling_update(rolling: &Members, at: &Path<'_>, causes: &mut Causes) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    let unavailable_at = at.child("maxUnavailable");
    int_or_percent(unavailable, &unavailable_at, causes);
    int_or_percent(surge, &at.child("maxSurge"), causes);
    if amount(unavailable) == 0 && amount(surge) == 0 {
        let bad = unavailable.map_or(BadValue::Int(0), BadValue::Encoded);
        causes.invalid(&unavailable_at, bad, "may not be 0 when `maxSurge` is 0");
    }
    at_most_all(unavailable, &unavailable_at, causes);
}

/// As the internal type is shown, which has Go's names.
pub fn strategy_shown(strategy: &Members) -> BadValue<'static> {
    let to_text = forebay_apimachinery::json::to_go_text;
    let rolling = child(strategy, "rollingUpdate").map_or("null".to_string(), |rolling| {
        let member = |name| rolling.get(name).map_or("0".to_string(), to_text);
        format!("{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}", member("maxUnavailable"), member("maxSurge"))
    });
    BadValue::shown(format!(
        "{{\"Type\":{},\"RollingUpdate\":{rolling}}}",
        to_text(&Value::from(text(strategy, "type")))
    ))
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    if update.is_status() {
        return validate_status(child_or_empty(new, "status"), child_or_empty(old, "status"), causes);
    }
    validate_create(new, causes);
    same_selector(child_or_empty(new, "spec"), child_or_empty(old, "spec"), causes);
}

fn validate_status(status: &Members, old: &Members, causes: &mut Causes) {
    const COUNTS: [&str; 8] = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    replica_counts(status, &COUNTS, "updatedReplicas", causes);
    not_decremented(status, old, "collisionCount", causes);
}
