//! StatefulSets.
//!
//! In: a StatefulSet. Out: defaults, causes. Never: its pods and claims.
//!
//! Source: kubernetes v1.36.3 `registry/apps/statefulset`, `apis/apps/{v1,validation}`.

use forebay_apimachinery::Seen;
use serde_json::{Value, json};

use super::template::{
    amount, at_most_all, int_or_percent, not_decremented, not_more_than, not_negative, selector_of,
};
use crate::core::pod::warnings::claim_spec;
use crate::core::{claim, pod};
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::lifecycle::{begin, status_apart};
use crate::meta::{annotations, labels, validate_built_in_update};
use crate::rule::{Context, Update};
use crate::selector;
use crate::typed::same_of;
use crate::value::{
    Members, child, child_made, child_mut, child_or_empty, default, default_text, int, list, objects,
    objects_mut, take_over, text,
};
use crate::warnings;

const SPEC: Path<'static> = Path::root("spec");
const STATUS: Path<'static> = Path::root("status");
const MUTABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

pub fn defaults(set: &mut Members) {
    let spec = child_made(set, "spec");
    default_text(spec, "podManagementPolicy", "OrderedReady");
    let strategy = child_made(spec, "updateStrategy");
    if text(strategy, "type").is_empty() {
        default_text(strategy, "type", "RollingUpdate");
        child_made(strategy, "rollingUpdate");
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = child_mut(strategy, "rollingUpdate")
    {
        default(rolling, "partition", 0);
    }
    let retention = child_made(spec, "persistentVolumeClaimRetentionPolicy");
    default_text(retention, "whenDeleted", "Retain");
    default_text(retention, "whenScaled", "Retain");
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    pod::defaults::template(child_made(spec, "template"));
    for of in objects_mut(spec, "volumeClaimTemplates") {
        of.insert("apiVersion".into(), "v1".into());
        of.insert("kind".into(), "PersistentVolumeClaim".into());
        claim::defaults(of);
    }
}

/// `maxUnavailable` is behind a gate that is off.
fn drop_gated(set: &mut Members, old: Option<&Members>) {
    const NAME: &str = "maxUnavailable";
    fn rolling(set: &Members) -> &Members {
        child_or_empty(child_or_empty(child_or_empty(set, "spec"), "updateStrategy"), "rollingUpdate")
    }
    if !rolling(set).contains_key(NAME) || old.is_some_and(|old| rolling(old).contains_key(NAME)) {
        return;
    }
    child_made(child_made(child_made(set, "spec"), "updateStrategy"), "rollingUpdate").remove(NAME);
}

pub fn prepare_create(set: &mut Members, context: &Context<'_>) {
    begin(set, context);
    drop_gated(set, None);
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    if !update.is_status() {
        drop_gated(new, Some(update.old));
    }
    status_apart(new, update, context);
}

/// What a stored set may keep that a new one may not have.
#[derive(Clone, Copy, Default)]
struct Tolerance {
    service_name: bool,
    claims: bool,
    template: bool,
}

pub fn validate_create(set: &Members, causes: &mut Causes) {
    validate(child_or_empty(set, "spec"), Tolerance::default(), causes);
}

fn validate(spec: &Members, tolerated: Tolerance, causes: &mut Causes) {
    match text(spec, "podManagementPolicy") {
        "OrderedReady" | "Parallel" => {}
        "" => causes.required(&SPEC.child("podManagementPolicy"), ""),
        other => {
            causes.invalid(&SPEC.child("podManagementPolicy"), other, "must be 'OrderedReady' or 'Parallel'");
        }
    }
    update_strategy(child_or_empty(spec, "updateStrategy"), causes);
    retention(spec, causes);
    if !tolerated.claims {
        let at = SPEC.child("volumeClaimTemplates");
        for (index, of) in objects(spec, "volumeClaimTemplates").enumerate() {
            claim::validate_spec(child_or_empty(of, "spec"), &at.index(index).child("spec"), causes);
        }
    }
    not_negative(spec, "replicas", &SPEC, causes);
    not_negative(spec, "minReadySeconds", &SPEC, causes);
    not_negative(child_or_empty(spec, "ordinals"), "start", &SPEC.child("ordinals"), causes);
    let service = text(spec, "serviceName");
    if !tolerated.service_name && !service.is_empty() {
        causes.faults(&SPEC.child("serviceName"), service, format::dns1123_label(service));
    }
    selector_of(spec, &SPEC, "empty selector is invalid for statefulset", causes);
    template(spec, tolerated, causes);
    let pod_spec = child_or_empty(child_or_empty(spec, "template"), "spec");
    let at = SPEC.child("template");
    let at = at.child("spec");
    if text(pod_spec, "restartPolicy") != "Always" {
        causes.not_supported(&at.child("restartPolicy"), text(pod_spec, "restartPolicy"), &["Always"]);
    }
    if pod_spec.contains_key("activeDeadlineSeconds") {
        let detail = "activeDeadlineSeconds in StatefulSet is not Supported";
        causes.forbidden(&at.child("activeDeadlineSeconds"), detail);
    }
}

fn update_strategy(strategy: &Members, causes: &mut Causes) {
    let at = SPEC.child("updateStrategy");
    match (text(strategy, "type"), child(strategy, "rollingUpdate")) {
        ("", _) => causes.required(&at, ""),
        ("OnDelete", Some(rolling)) => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            causes.invalid(&at.child("rollingUpdate"), BadValue::shown(rolling_shown(rolling)), detail);
        }
        ("RollingUpdate", Some(rolling)) => rolling_update(rolling, &at.child("rollingUpdate"), causes),
        ("OnDelete" | "RollingUpdate", None) => {}
        (other, rolling) => {
            let rolling = rolling.map_or("null".into(), rolling_shown);
            let kind = forebay_apimachinery::json::to_go_text(&Value::from(other));
            let bad = format!("{{\"Type\":{kind},\"RollingUpdate\":{rolling}}}");
            causes.invalid(&at, BadValue::shown(bad), "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn rolling_shown(rolling: &Members) -> String {
    let unavailable =
        rolling.get("maxUnavailable").map_or("null".into(), forebay_apimachinery::json::to_go_text);
    let partition = int(rolling, "partition").unwrap_or(0);
    format!("{{\"Partition\":{partition},\"MaxUnavailable\":{unavailable}}}")
}

fn rolling_update(rolling: &Members, at: &Path<'_>, causes: &mut Causes) {
    not_negative(rolling, "partition", at, causes);
    let unavailable = rolling.get("maxUnavailable");
    let at = at.child("maxUnavailable");
    if let Some(value) = unavailable {
        int_or_percent(unavailable, &at, causes);
        if amount(unavailable) == 0 {
            causes.invalid(&at, BadValue::Encoded(value), "cannot be 0");
        }
        at_most_all(unavailable, &at, causes);
    }
}

fn retention(spec: &Members, causes: &mut Causes) {
    const POLICIES: [&str; 2] = ["Retain", "Delete"];
    let Some(policy) = child(spec, "persistentVolumeClaimRetentionPolicy") else { return };
    let at = SPEC.child("persistentVolumeClaimRetentionPolicy");
    for name in ["whenDeleted", "whenScaled"] {
        let value = text(policy, name);
        if !POLICIES.contains(&value) {
            causes.not_supported(&at.child(name), value, &POLICIES);
        }
    }
}

/// The template as its pods will be: with the volumes of their claims, and names of their own.
fn template(spec: &Members, tolerated: Tolerance, causes: &mut Causes) {
    let at = SPEC.child("template");
    let template = child_or_empty(spec, "template");
    let meta = child_or_empty(template, "metadata");
    match selector::of(spec, "selector") {
        Err(_) => {
            return causes.invalid(&SPEC.child("selector"), selector::shown(spec.get("selector")), "");
        }
        Ok(selector) => {
            if !selector.is_everything() && !selector::selects(&selector, child(meta, "labels")) {
                pod::template_not_selected(template, &at, causes);
            }
        }
    }
    if !tolerated.template {
        pod::validate_template(&with_claims(spec), &at, causes);
    }
    labels(child_or_empty(meta, "labels"), &at.child("labels"), causes);
    annotations(meta, &at.child("annotations"), causes);
}

fn with_claims(spec: &Members) -> Members {
    let mut template = child_or_empty(spec, "template").clone();
    let mut known = Seen::default();
    let claims = objects(spec, "volumeClaimTemplates");
    let names = claims.map(|claim| text(child_or_empty(claim, "metadata"), "name"));
    // Of two of one name the last is claimed.
    let names: Vec<&str> = names.filter(|name| !known.again(*name)).collect();
    let pod_spec = child_made(&mut template, "spec");
    pod_spec.remove("subdomain");
    pod_spec.remove("hostname");
    if names.is_empty() {
        return template;
    }
    let claimed =
        names.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let own = list(pod_spec, "volumes")
        .iter()
        .filter(|volume| !volume.as_object().is_some_and(|volume| known.has(text(volume, "name"))));
    let volumes: Vec<Value> = claimed.chain(own.cloned()).collect();
    pod_spec.insert("volumes".into(), Value::Array(volumes));
    template
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    if update.is_status() {
        let (status, old_status) = (child_or_empty(new, "status"), child_or_empty(old, "status"));
        validate_status(status, causes);
        validate_built_in_update(new, old, causes);
        return not_decremented(status, old_status, "collisionCount", causes);
    }
    validate_built_in_update(new, old, causes);
    let (spec, old_spec) = (child_or_empty(new, "spec"), child_or_empty(old, "spec"));
    let mut tolerated = Tolerance { service_name: true, claims: true, template: false };
    let mut before = Causes::under(causes.privileged);
    validate(old_spec, tolerated, &mut before);
    tolerated.template = !before.is_empty();
    validate(spec, tolerated, causes);
    let mut rest = spec.clone();
    MUTABLE.into_iter().for_each(|name| take_over(&mut rest, old_spec, name));
    if !same_of(("apps/v1", "StatefulSetSpec"), &rest, old_spec) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        causes.forbidden(&SPEC, detail);
    }
}

fn validate_status(status: &Members, causes: &mut Causes) {
    const COUNTS: [&str; 7] = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    COUNTS.into_iter().for_each(|name| not_negative(status, name, &STATUS, causes));
    for name in ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"] {
        not_more_than(status, name, "replicas", "cannot be greater than status.replicas", causes);
    }
    let detail = "cannot be greater than status.readyReplicas";
    not_more_than(status, "availableReplicas", "readyReplicas", detail, causes);
}

pub fn warn(set: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    warnings::of_template(set, update, out);
    if !warnings::is_of_interest(set, update) {
        return;
    }
    let (spec, at) = (child_or_empty(set, "spec"), Path::root("spec"));
    let at = at.child("volumeClaimTemplates");
    for (index, claim) in objects(spec, "volumeClaimTemplates").enumerate() {
        claim_spec(child_or_empty(claim, "spec"), &at.index(index), out);
    }
    if int(spec, "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        out.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .to_string(),
        );
    }
}
