//! DaemonSets.
//!
//! In: a DaemonSet. Out: defaults, its generations, causes. Never: its pods.
//!
//! The generation of the template lives in an annotation since `apps/v1`; only the server writes it.
//!
//! Source: kubernetes v1.36.3 `registry/apps/daemonset`, `apis/apps/{v1,validation}`.

use super::deployment::strategy_shown;
use super::template::{amount, at_most_all, int_or_percent, not_decremented, not_negative, same_selector};
use crate::core::pod;
use crate::field::{BadValue, Causes, Path};
use crate::lifecycle::{begin, bump_generation};
use crate::meta::validate_built_in_update;
use crate::rule::{Context, Update};
use crate::selector;
use crate::typed::same_of;
use crate::value::{
    Members, child, child_made, child_mut, child_or_empty, default, default_text, same_member, take_over,
    text,
};
use crate::warnings::of_template;

const SPEC: Path<'static> = Path::root("spec");
const STATUS: Path<'static> = Path::root("status");
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub fn defaults(set: &mut Members) {
    let spec = child_made(set, "spec");
    let strategy = child_made(spec, "updateStrategy");
    default_text(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child_made(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", 1);
    }
    // What is there for another type has both numbers, too: upstream's own form of it knows no absence.
    if let Some(rolling) = child_mut(strategy, "rollingUpdate") {
        default(rolling, "maxUnavailable", 0);
        default(rolling, "maxSurge", 0);
    }
    default(spec, "revisionHistoryLimit", 10);
    pod::defaults::template(child_made(spec, "template"));
    // Upstream's own form of it has a number, which every version of it shows.
    set_template_generation(set, template_generation(set));
}

fn template_generation(set: &Members) -> i64 {
    let annotations = child_or_empty(child_or_empty(set, "metadata"), "annotations");
    text(annotations, TEMPLATE_GENERATION).parse().unwrap_or(0)
}

fn set_template_generation(set: &mut Members, generation: i64) {
    let annotations = child_made(child_made(set, "metadata"), "annotations");
    annotations.insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
}

pub fn prepare_create(set: &mut Members, context: &Context<'_>) {
    begin(set, context);
    let generation = template_generation(set).max(1);
    set_template_generation(set, generation);
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    let old = update.old;
    let generation = template_generation(old);
    if update.is_status() {
        take_over(new, old, "spec");
        return set_template_generation(new, generation);
    }
    take_over(new, old, "status");
    let template = |set| child_or_empty(child_or_empty(set, "spec"), "template");
    let same_template = same_of(("core/v1", "PodTemplateSpec"), template(new), template(old));
    set_template_generation(new, generation + i64::from(!same_template));
    if !same_member(new, old, "spec") {
        bump_generation(new, old);
    }
}

/// Of an update that changes the template.
pub fn warnings(set: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    let is_other = |update: &Update<'_>| {
        !update.is_status() && template_generation(set) != template_generation(update.old)
    };
    if update.is_none_or(is_other) {
        of_template(set, None, out);
    }
}

pub fn validate_create(set: &Members, causes: &mut Causes) {
    let spec = child_or_empty(set, "spec");
    let template = child_or_empty(spec, "template");
    if let Some(of) = child(spec, "selector") {
        selector::validate(of, &SPEC.child("selector"), causes);
    }
    let labels = child(child_or_empty(template, "metadata"), "labels");
    if selector::of(spec, "selector").is_ok_and(|selector| !selector::selects(&selector, labels)) {
        pod::template_not_selected(template, &SPEC.child("template"), causes);
    }
    if child(spec, "selector").is_some_and(selector::is_empty) {
        let bad = selector::shown(spec.get("selector"));
        causes.invalid(&SPEC.child("selector"), bad, "empty selector is invalid for daemonset");
    }
    pod::validate_template(template, &SPEC.child("template"), causes);
    pod::only_always(template, "DaemonSet", &SPEC.child("template"), causes);
    not_negative(spec, "minReadySeconds", &SPEC, causes);
    update_strategy(child_or_empty(spec, "updateStrategy"), causes);
    not_negative(spec, "revisionHistoryLimit", &SPEC, causes);
}

fn update_strategy(strategy: &Members, causes: &mut Causes) {
    let at = SPEC.child("updateStrategy");
    match (text(strategy, "type"), child(strategy, "rollingUpdate")) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => causes.required(&at.child("rollingUpdate"), ""),
        ("RollingUpdate", Some(rolling)) => rolling_update(rolling, &at.child("rollingUpdate"), causes),
        _ => causes.not_supported(&at, strategy_shown(strategy), &["RollingUpdate", "OnDelete"]),
    }
}

fn rolling_update(rolling: &Members, at: &Path<'_>, causes: &mut Causes) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    let (unavailable_at, surge_at) = (at.child("maxUnavailable"), at.child("maxSurge"));
    int_or_percent(unavailable, &unavailable_at, causes);
    int_or_percent(surge, &surge_at, causes);
    at_most_all(unavailable, &unavailable_at, causes);
    at_most_all(surge, &surge_at, causes);
    match (amount(unavailable) != 0, amount(surge) != 0) {
        (true, true) => {
            let bad = surge.map_or(BadValue::Int(0), BadValue::Encoded);
            causes.invalid(&surge_at, bad, "may not be set when maxUnavailable is non-zero");
        }
        (false, false) => causes.required(&unavailable_at, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    if update.is_status() {
        let (status, old_status) = (child_or_empty(new, "status"), child_or_empty(old, "status"));
        const COUNTS: [&str; 9] = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ];
        COUNTS.into_iter().for_each(|name| not_negative(status, name, &STATUS, causes));
        return not_decremented(status, old_status, "collisionCount", causes);
    }
    same_selector(child_or_empty(new, "spec"), child_or_empty(old, "spec"), causes);
    validate_create(new, causes);
}
