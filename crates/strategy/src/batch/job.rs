//! Jobs.
//!
//! In: a Job. Out: defaults, its selector and labels, causes. Never: its pods.
//!
//! Source: kubernetes v1.36.3 `registry/batch/job`, `apis/batch/{v1,validation}`.

use serde_json::{Value, json};

use super::{spec, status};
use crate::core::pod;
use crate::core::pod::warnings::of_owner_name;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::lifecycle::{begin, status_apart};
use crate::meta::{IMMUTABLE, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::selector;
use crate::typed::{same_field_of, same_of};
use crate::value::{
    Members, child, child_made, child_mut, child_or_empty, default, int, is_true, objects, same_member,
    take_over, text, text_opt,
};
use crate::warnings;

const SPEC: Path<'static> = Path::root("spec");
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const LEGACY_CONTROLLER_UID: &str = "controller-uid";
const LEGACY_JOB_NAME: &str = "job-name";

pub fn defaults(job: &mut Members) {
    let spec = child_made(job, "spec");
    default_spec(spec);
    default(spec, "manualSelector", false);
}

/// The spec of a Job that exists. A CronJob's is filled in when its Jobs are made, but for the template.
fn default_spec(spec: &mut Members) {
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        default(spec, "completions", 1);
    }
    default(spec, "parallelism", 1);
    let per_index = spec.contains_key("backoffLimitPerIndex");
    default(spec, "backoffLimit", if per_index { i64::from(i32::MAX) } else { 6 });
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    let fails_early = spec.contains_key("podFailurePolicy");
    default(spec, "podReplacementPolicy", if fails_early { "Failed" } else { "TerminatingOrFailed" });
    failure_patterns(spec);
    pod::defaults::template(child_made(spec, "template"));
}

/// Patterns of a failure policy match conditions that are true.
pub fn failure_patterns(spec: &mut Members) {
    use crate::value::{default_text, objects_mut};
    let Some(policy) = child_mut(spec, "podFailurePolicy") else { return };
    for rule in objects_mut(policy, "rules") {
        objects_mut(rule, "onPodConditions").for_each(|pattern| default_text(pattern, "status", "True"));
    }
}

/// A new Job selects its pods by its own uid, unless its owner selects them by hand.
pub fn prepare_create(job: &mut Members, context: &Context<'_>) {
    begin(job, context);
    if !is_true(child_or_empty(job, "spec"), "manualSelector") {
        select_by_uid(job);
    }
    labels_of_template(job);
}

/// A Job without labels has those of its template.
pub fn labels_by_default(job: &Members) -> Option<Members> {
    let template = child_or_empty(child_or_empty(job, "spec"), "template");
    let labels = child(child_or_empty(template, "metadata"), "labels").filter(|labels| !labels.is_empty());
    let own = child_or_empty(child_or_empty(job, "metadata"), "labels");
    labels.filter(|_| own.is_empty()).cloned()
}

/// The generated ones included.
fn labels_of_template(job: &mut Members) {
    if let Some(labels) = labels_by_default(job) {
        child_made(job, "metadata").insert("labels".into(), Value::Object(labels));
    }
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart(new, update, context);
    labels_of_template(new);
}

fn select_by_uid(job: &mut Members) {
    let meta = child_or_empty(job, "metadata");
    let (name, uid) = (text(meta, "name").to_string(), text(meta, "uid").to_string());
    let spec = child_made(job, "spec");
    let labels = child_made(child_made(child_made(spec, "template"), "metadata"), "labels");
    for (key, value) in
        [(LEGACY_JOB_NAME, &name), (JOB_NAME, &name), (LEGACY_CONTROLLER_UID, &uid), (CONTROLLER_UID, &uid)]
    {
        default(labels, key, value.as_str());
    }
    let selected = child_made(child_made(spec, "selector"), "matchLabels");
    default(selected, CONTROLLER_UID, uid);
}

pub fn validate_create(job: &Members, causes: &mut Causes) {
    validate(job, true, causes);
}

fn validate(job: &Members, prefixed_labels: bool, causes: &mut Causes) {
    let (meta, spec) = (child_or_empty(job, "metadata"), child_or_empty(job, "spec"));
    generated_selector(meta, spec, prefixed_labels, causes);
    validate_spec(spec, causes);
    let completions = int(spec, "completions").unwrap_or(0);
    if text(spec, "completionMode") == "Indexed" && completions > 0 {
        let name = text(meta, "name");
        let hostname = format!("{name}-{}", completions - 1);
        if !format::dns1123_label(&hostname).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {hostname}");
            let at = Path::root("metadata");
            causes.invalid(&at.child("name"), name, &detail);
        }
    }
}

fn validate_spec(spec: &Members, causes: &mut Causes) {
    spec::validate(spec, &SPEC, causes);
    match child(spec, "selector") {
        None => causes.required(&SPEC.child("selector"), ""),
        Some(selector) => selector::validate(selector, &SPEC.child("selector"), causes),
    }
    let template = child_or_empty(spec, "template");
    let labels = child(child_or_empty(template, "metadata"), "labels");
    if selector::of(spec, "selector").is_ok_and(|selector| !selector::selects(&selector, labels)) {
        pod::template_not_selected(template, &SPEC.child("template"), causes);
    }
}

/// The labels that the selector was generated for must still be there.
fn generated_selector(meta: &Members, spec: &Members, prefixed: bool, causes: &mut Causes) {
    if is_true(spec, "manualSelector") || child(spec, "selector").is_none() {
        return;
    }
    let (name, uid) = (text(meta, "name"), text(meta, "uid"));
    if uid.is_empty() {
        let at = Path::root("metadata");
        causes.required(&at.child("uid"), "");
    }
    let mut expected = vec![(LEGACY_CONTROLLER_UID, uid), (LEGACY_JOB_NAME, name)];
    if prefixed {
        expected.extend([(CONTROLLER_UID, uid), (JOB_NAME, name)]);
    }
    let at = SPEC.child("template");
    let (at, labels_name) = (at.child("metadata"), "labels");
    let at = at.child(labels_name);
    let template = child_or_empty(child_or_empty(spec, "template"), "metadata");
    let labels = child_or_empty(template, "labels");
    for (key, value) in &expected {
        match text_opt(labels, key) {
            None => causes.required(&at.key(key), &format!("must be '{value}'")),
            Some(is) if is == *value => {}
            Some(_) => causes.invalid(&at.key(key), template.get("labels"), &format!("must be '{value}'")),
        }
    }
    let generated = |selector: forebay_apimachinery::selector::LabelSelector| {
        // Few: the labels that are generated.
        selector.matches(|key| expected.iter().find(|(known, _)| *known == key).map(|(_, value)| *value))
    };
    if selector::of(spec, "selector").is_ok_and(|selector| !generated(selector)) {
        causes.invalid(
            &SPEC.child("selector"),
            selector::shown(spec.get("selector")),
            "`selector` not auto-generated",
        );
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    if update.is_status() {
        validate_built_in_update(new, old, causes);
        return status::validate_update(new, old, causes);
    }
    let old_spec = child_or_empty(old, "spec");
    let old_labels =
        child_or_empty(child_or_empty(child_or_empty(old_spec, "template"), "metadata"), "labels");
    let prefixed = old_labels.contains_key(JOB_NAME) && old_labels.contains_key(CONTROLLER_UID);
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate(new, prefixed, causes);
    validate_built_in_update(new, old, causes);
    let spec = child_or_empty(new, "spec");
    validate_spec(spec, causes);
    completions(spec, old_spec, causes);
    if !same_member(spec, old_spec, "selector") {
        causes.invalid(&SPEC.child("selector"), selector::shown(spec.get("selector")), IMMUTABLE);
    }
    template(spec, old, causes);
    const TYPE: (&str, &str) = ("batch/v1", "JobSpec");
    const FIXED: [&str; 5] =
        ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];
    for name in FIXED {
        if !same_field_of(TYPE, name, spec.get(name), old_spec.get(name)) {
            let bad = match (name, child(spec, name)) {
                ("podFailurePolicy", Some(policy)) => internal::shown("PodFailurePolicy", policy),
                ("successPolicy", Some(policy)) => internal::shown("SuccessPolicy", policy),
                _ => BadValue::encoded(spec.get(name)),
            };
            causes.invalid(&SPEC.child(name), bad, IMMUTABLE);
        }
    }
}

fn completions(spec: &Members, old: &Members, causes: &mut Causes) {
    if same_member(spec, old, "completions") {
        return;
    }
    let at = SPEC.child("completions");
    if text(spec, "completionMode") != "Indexed" {
        causes.invalid(&at, BadValue::encoded(spec.get("completions")), IMMUTABLE);
    } else if spec.contains_key("completions") && spec.get("completions") != spec.get("parallelism") {
        causes.invalid(
            &at,
            BadValue::encoded(spec.get("completions")),
            "can only be modified in tandem with spec.parallelism",
        );
    }
}

/// The template stays; while the Job is suspended and has no pods, where its pods go and what they ask for
/// may change.
fn template(spec: &Members, old: &Members, causes: &mut Causes) {
    let (old_spec, old_status) = (child_or_empty(old, "spec"), child_or_empty(old, "status"));
    let suspended = is_true(old_spec, "suspend");
    let rests = !old_status.contains_key("startTime") || status::is_true_condition(old_status, "Suspended");
    let free = suspended && rests && int(old_status, "active").unwrap_or(0) == 0;
    let template = child_or_empty(spec, "template");
    let mut before = child_or_empty(old_spec, "template").clone();
    if free {
        take_over_directives(&mut before, template);
    }
    if suspended && free {
        take_over_resources(child_made(&mut before, "spec"), child_or_empty(template, "spec"));
        let (new_pod, old_pod) = (child_or_empty(template, "spec"), child_or_empty(&before, "spec"));
        if !same_of(("core/v1", "PodSpec"), new_pod, old_pod) {
            causes.invalid(&SPEC.child("template.spec"), internal::shown("PodSpec", new_pod), IMMUTABLE);
        }
    } else if !same_of(("core/v1", "PodTemplateSpec"), template, &before) {
        causes.invalid(&SPEC.child("template"), internal::shown("PodTemplateSpec", template), IMMUTABLE);
    }
}

fn take_over_directives(before: &mut Members, template: &Members) {
    let pod = child_or_empty(template, "spec");
    let before_pod = child_made(before, "spec");
    let node = child(pod, "affinity").and_then(|affinity| affinity.get("nodeAffinity")).cloned();
    match (child(pod, "affinity").is_some(), child_mut(before_pod, "affinity")) {
        (_, Some(affinity)) => {
            crate::value::set(affinity, "nodeAffinity", node);
            if affinity.is_empty() && child(pod, "affinity").is_none() {
                before_pod.remove("affinity");
            }
        }
        (true, None) => {
            let affinity = node.map_or(json!({}), |node| json!({ "nodeAffinity": node }));
            before_pod.insert("affinity".into(), affinity);
        }
        (false, None) => {}
    }
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        take_over(before_pod, pod, name);
    }
    let meta = child_or_empty(template, "metadata");
    let before_meta = child_made(before, "metadata");
    for name in ["annotations", "labels"] {
        take_over(before_meta, meta, name);
    }
}

fn take_over_resources(before: &mut Members, pod: &Members) {
    for name in ["containers", "initContainers"] {
        let wanted: Vec<&Members> = objects(pod, name).collect();
        let containers: Vec<&mut Members> = crate::value::objects_mut(before, name).collect();
        if containers.len() != wanted.len() {
            continue;
        }
        for (container, wanted) in containers.into_iter().zip(wanted) {
            if text(container, "name") == text(wanted, "name") {
                take_over(container, wanted, "resources");
            }
        }
    }
}

pub fn warn(job: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    if update.is_none() {
        of_owner_name(job, out);
    }
    if warnings::is_of_interest(job, update) {
        warnings::of_job_spec(child_or_empty(job, "spec"), &Path::root("spec"), out);
    }
}
