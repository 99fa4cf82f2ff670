//! The kinds of `autoscaling`.
//!
//! In: a HorizontalPodAutoscaler as v2 has it; only its defaults know v1. Out: defaults, causes. Never:
//! scales anything; the `scale` of other kinds, which is [`scale`](super::scale).
//!
//! Source: kubernetes v1.36.3 `registry/autoscaling/horizontalpodautoscaler`, `apis/autoscaling/{v1,v2,validation}`.

mod convert;
mod defaults;
mod metrics;

use forebay_apimachinery::quantity;

use super::counts::not_negative;
use super::field::{Causes, Path};
use super::format;
use super::lifecycle::{reset_status, status_apart_without_generation};
use super::meta::validate_built_in_update;
use super::names::NameRule;
use super::rule::{Context, NONE, Rules, Update};
use super::value::{
    Members, child, child_made, child_mut, child_or_empty, int, list, objects, text, text_opt,
};

pub use convert::{to_v1 as autoscaler_to_v1, to_v2 as autoscaler_to_v2};

/// What v1 keeps what it has no fields for in; v2 has no such annotations.
pub const ROUND_TRIP_ANNOTATIONS: [&str; 6] = [
    "autoscaling.alpha.kubernetes.io/metrics",
    "autoscaling.alpha.kubernetes.io/behavior",
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "autoscaling.alpha.kubernetes.io/conditions",
];
const WINDOW_SECONDS_MAX: i64 = 3600;
const PERIOD_SECONDS_MAX: i64 = 1800;
const SPEC: Path<'static> = Path::root("spec");

pub const KINDS: &[Rules] = &[Rules {
    kind: "HorizontalPodAutoscaler",
    name: Some(NameRule::Subdomain),
    defaults: defaults::autoscaler,
    prepare_create: |autoscaler, context| {
        reset_status(autoscaler, context);
        drop_round_trip_annotations(autoscaler);
    },
    prepare_update,
    validate_create: |autoscaler, causes| validate(autoscaler, None, causes),
    validate_update,
    ..NONE
}];

fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart_without_generation(new, update, context);
    drop_round_trip_annotations(new);
}

/// Takes away what only v1 has.
pub fn drop_round_trip_annotations(autoscaler: &mut Members) {
    let meta = child_made(autoscaler, "metadata");
    let Some(annotations) = child_mut(meta, "annotations") else { return };
    annotations.retain(|name, _| !ROUND_TRIP_ANNOTATIONS.contains(&name.as_str()));
    if annotations.is_empty() {
        meta.remove("annotations");
    }
}

fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    if update.is_status() {
        let (status, at) = (child_or_empty(new, "status"), Path::root("status"));
        not_negative(status, "currentReplicas", &at, causes);
        return not_negative(status, "desiredReplicas", &at, causes);
    }
    validate(new, Some(update.old), causes);
}

/// What the group of a reference may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Groups {
    /// One that has a name.
    Named,
    Any,
    /// It was something else before, and is not judged again.
    Unjudged,
}

fn validate(autoscaler: &Members, old: Option<&Members>, causes: &mut Causes) {
    let spec = child_or_empty(autoscaler, "spec");
    let old_spec = old.map(|old| child_or_empty(old, "spec"));
    replicas(spec, old_spec, causes);
    let target = child_or_empty(spec, "scaleTargetRef");
    reference(target, target_groups(target, old_spec), &SPEC.child("scaleTargetRef"), causes);
    metrics::validate(spec, metric_groups(old_spec), causes);
    let Some(behavior) = child(spec, "behavior") else { return };
    let at = SPEC.child("behavior");
    for name in ["scaleUp", "scaleDown"] {
        if let Some(rules) = child(behavior, name) {
            scaling_rules(rules, &at.child(name), causes);
        }
    }
}

/// Down to zero is behind a gate that is off, but for those who are there.
fn replicas(spec: &Members, old: Option<&Members>, causes: &mut Causes) {
    let minimum = i64::from(old.and_then(|old| int(old, "minReplicas")) != Some(0));
    let (min, max) = (int(spec, "minReplicas"), int(spec, "maxReplicas").unwrap_or(0));
    if let Some(min) = min.filter(|min| *min < minimum) {
        let detail = format!("must be greater than or equal to {minimum}");
        causes.invalid(&SPEC.child("minReplicas"), min, &detail);
    }
    let at = SPEC.child("maxReplicas");
    if max == 0 {
        causes.required(&at, "must be set and greater than 0");
    } else if max < 0 {
        causes.invalid(&at, max, "must be greater than or equal to 1");
    }
    if min.is_some_and(|min| max < min) {
        causes.invalid(&at, max, "must be greater than or equal to `minReplicas`");
    }
}

fn target_groups(target: &Members, old: Option<&Members>) -> Groups {
    let same = |old: &Members| {
        let old = child_or_empty(old, "scaleTargetRef");
        ["apiVersion", "kind"].iter().all(|name| text(old, name) == text(target, name))
    };
    match old {
        Some(old) if same(old) => Groups::Unjudged,
        _ if text(target, "kind") == "ReplicationController" => Groups::Any,
        _ => Groups::Named,
    }
}

fn metric_groups(old: Option<&Members>) -> Groups {
    let wrong = |metric: &Members| {
        let described = child_or_empty(child_or_empty(metric, "object"), "describedObject");
        text(metric, "type") == "Object" && group_fault(described, Groups::Any).is_some()
    };
    match old {
        Some(old) if objects(old, "metrics").any(wrong) => Groups::Unjudged,
        _ => Groups::Any,
    }
}

/// A reference to an object by kind, name and version.
fn reference(reference: &Members, groups: Groups, at: &Path<'_>, causes: &mut Causes) {
    for name in ["kind", "name"] {
        match text(reference, name) {
            "" => causes.required(&at.child(name), ""),
            value => causes.faults(&at.child(name), value, format::path_segment(value, false)),
        }
    }
    if let Some(fault) = group_fault(reference, groups) {
        causes.invalid(&at.child("apiVersion"), text(reference, "apiVersion"), &fault);
    }
}

fn group_fault(reference: &Members, groups: Groups) -> Option<String> {
    let version = text(reference, "apiVersion");
    let grouped = version.split_once('/').is_some_and(|(group, _)| !group.is_empty());
    match groups {
        Groups::Unjudged => None,
        _ if version.matches('/').count() > 1 => Some(format!("unexpected GroupVersion string: {version}")),
        Groups::Named if !grouped => Some("apiVersion must specify API group".into()),
        Groups::Named | Groups::Any => None,
    }
}

fn scaling_rules(rules: &Members, at: &Path<'_>, causes: &mut Causes) {
    const SELECTED: [&str; 3] = ["Disabled", "Max", "Min"];
    let window_at = at.child("stabilizationWindowSeconds");
    match int(rules, "stabilizationWindowSeconds") {
        Some(window) if window < 0 => {
            causes.invalid(&window_at, window, "must be greater than or equal to zero");
        }
        Some(window) if window > WINDOW_SECONDS_MAX => {
            causes.invalid(&window_at, window, "must be less than or equal to 3600");
        }
        _ => {}
    }
    if let Some(policy) = text_opt(rules, "selectPolicy").filter(|policy| !SELECTED.contains(policy)) {
        causes.not_supported(&at.child("selectPolicy"), policy, &SELECTED);
    }
    let policies_at = at.child("policies");
    if list(rules, "policies").is_empty() {
        causes.required(&policies_at, "must specify at least one Policy");
    }
    for (index, of) in objects(rules, "policies").enumerate() {
        scaling_policy(of, &policies_at.index(index), causes);
    }
    if let Some(tolerance) = rules.get("tolerance").filter(|tolerance| quantity::of(tolerance) < 0) {
        causes.invalid(&at.child("tolerance"), tolerance, "must be greater than or equal to 0");
    }
}

fn scaling_policy(policy: &Members, at: &Path<'_>, causes: &mut Causes) {
    const TYPES: [&str; 2] = ["Percent", "Pods"];
    let kind = text(policy, "type");
    if !TYPES.contains(&kind) {
        causes.not_supported(&at.child("type"), kind, &TYPES);
    }
    for name in ["value", "periodSeconds"] {
        let number = int(policy, name).unwrap_or(0);
        if number <= 0 {
            causes.invalid(&at.child(name), number, "must be greater than zero");
        }
    }
    let period = int(policy, "periodSeconds").unwrap_or(0);
    if period > PERIOD_SECONDS_MAX {
        causes.invalid(&at.child("periodSeconds"), period, "must be less than or equal to 1800");
    }
}
