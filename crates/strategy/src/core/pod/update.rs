//! Pods: what a new one may be, and what may change of one that exists.
//!
//! In: a pod, and the stored one. Out: causes. Never: a template.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use forebay_apimachinery::Seen;
use forebay_apimachinery::seen::Firsts;
use serde_json::Value;

use super::annotations::{self, MIRROR};
use super::app_armor;
use super::container::no_spaces;
use super::spec::{self, Owner, toleration_rules};
use super::{resize, status};
use crate::field::{BadValue, Causes, Path};
use crate::internal;
use crate::meta::{validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::Update;
use crate::typed::same_of;
use crate::value::{
    Members, child, child_made, child_mut, child_or_empty, int, list, list_mut, objects, take_over, text,
};

const SPEC: Path<'static> = Path::root("spec");

pub fn validate_create(pod: &Members, causes: &mut Causes) {
    validate(pod, None, causes);
    let spec = child_or_empty(pod, "spec");
    if !list(spec, "ephemeralContainers").is_empty() {
        causes.forbidden(&SPEC.child("ephemeralContainers"), "cannot be set on create");
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        causes.forbidden(&SPEC.child("nodeName"), detail);
    }
    let noted = annotations::of_pod(pod);
    annotations::seccomp_fields_match(noted, spec, &SPEC, causes);
    app_armor::fields_match(noted, spec, &SPEC, causes);
}

/// What holds for every pod, its metadata aside.
fn validate(pod: &Members, old: Option<&Members>, causes: &mut Causes) {
    let (meta, spec, noted) =
        (child_or_empty(pod, "metadata"), child_or_empty(pod, "spec"), annotations::of_pod(pod));
    let at = Path::root("metadata");
    annotations::validate(noted, old.map(annotations::of_pod), spec, &at.child("annotations"), causes);
    let name = text(meta, "name");
    let is_static = noted.contains_key(MIRROR);
    let owner = if is_static { Owner::StaticPod(name) } else { Owner::Pod(name) };
    spec::validate(spec, owner, &SPEC, causes);
    spec::block_devices(spec, old.map(|old| child_or_empty(old, "spec")), &SPEC, causes);
    if text(spec, "serviceAccountName").is_empty() {
        tokens_without_account(spec, causes);
    }
    for name in ["containers", "initContainers"] {
        for (index, container) in objects(spec, name).enumerate() {
            no_spaces(container, &SPEC.child(name).index(index), causes);
        }
    }
}

fn tokens_without_account(spec: &Members, causes: &mut Causes) {
    for (index, volume) in objects(spec, "volumes").enumerate() {
        let Some(projected) = child(volume, "projected") else { continue };
        for (position, source) in objects(projected, "sources").enumerate() {
            if source.contains_key("serviceAccountToken") {
                let at = SPEC.child("volumes");
                let at = at.index(index);
                let at = at.child("projected");
                let at = at.child("sources");
                let detail = "must not be specified when serviceAccountName is not set";
                causes.forbidden(&at.index(position).child("serviceAccountToken"), detail);
            }
        }
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    if update.is_status() {
        annotations::validate_update(new, old, causes);
        return status::validate_update(new, old, causes);
    }
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate(new, Some(old), causes);
    if update.subresource == Some("resize") {
        return resize::validate_update(new, old, causes);
    }
    annotations::validate_update(new, old, causes);
    match update.subresource {
        Some("ephemeralcontainers") => ephemeral_containers(new, old, causes),
        _ => spec_update(child_or_empty(new, "spec"), child_or_empty(old, "spec"), causes),
    }
}

fn spec_update(new: &Members, old: &Members, causes: &mut Causes) {
    for name in ["containers", "initContainers"] {
        if !same_containers(new, old, name, causes) {
            return;
        }
    }
    if !deadline(new, old, causes) {
        return;
    }
    added_tolerations(new, old, causes);
    removed_gates(new, old, causes);
    let mut rest = new.clone();
    for name in ["containers", "initContainers"] {
        let images = objects(old, name);
        let containers = list_mut(&mut rest, name).iter_mut().filter_map(Value::as_object_mut);
        containers.zip(images).for_each(|(container, old)| take_over(container, old, "image"));
    }
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        take_over(&mut rest, old, name);
    }
    const GRACE: &str = "terminationGracePeriodSeconds";
    if int(old, GRACE).is_some_and(|seconds| seconds < 0) && int(&rest, GRACE) == Some(1) {
        take_over(&mut rest, old, GRACE);
    }
    if !list(old, "schedulingGates").is_empty() {
        while_gated(&mut rest, old, causes);
    }
    if !same_of(("core/v1", "PodSpec"), &rest, old) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                      to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                      was previously negative)";
        causes.forbidden(&SPEC, &format!("{detail}\n{}", internal::difference("PodSpec", old, &rest)));
    }
}

fn same_containers(new: &Members, old: &Members, name: &str, causes: &mut Causes) -> bool {
    let at = SPEC.child(name);
    if list(new, name).len() != list(old, name).len() {
        causes.forbidden(&at, "pod updates may not add or remove containers");
        return false;
    }
    for (index, container) in objects(new, name).enumerate() {
        if text(container, "image").is_empty() {
            causes.required(&at.index(index).child("image"), "");
        }
        no_spaces(container, &at.index(index), causes);
    }
    true
}

/// Whether to look further.
fn deadline(new: &Members, old: &Members, causes: &mut Causes) -> bool {
    let at = SPEC.child("activeDeadlineSeconds");
    match (int(new, "activeDeadlineSeconds"), int(old, "activeDeadlineSeconds")) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            causes.invalid(&at, seconds, "must be between 0 and 2147483647, inclusive");
            false
        }
        (Some(seconds), Some(before)) if before < seconds => {
            causes.invalid(&at, seconds, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            causes.invalid(&at, BadValue::Nil, "must not update from a positive integer to nil value");
            true
        }
        _ => true,
    }
}

fn added_tolerations(new: &Members, old: &Members, causes: &mut Causes) {
    let at = SPEC.child("tolerations");
    // Its seconds are not among them.
    const MEMBERS: [&str; 4] = ["key", "operator", "value", "effect"];
    fn tolerated(toleration: &Members) -> [&str; 4] {
        MEMBERS.map(|name| text(toleration, name))
    }
    let kept: Seen<[&str; 4]> = objects(new, "tolerations").map(tolerated).collect();
    if !objects(old, "tolerations").map(tolerated).all(|before| kept.has(&before)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        return causes.forbidden(&at, detail);
    }
    for (index, toleration) in objects(new, "tolerations").enumerate() {
        toleration_rules(toleration, &at.index(index), causes);
    }
}

fn removed_gates(new: &Members, old: &Members, causes: &mut Causes) {
    let known: Seen<&str> = objects(old, "schedulingGates").map(|gate| text(gate, "name")).collect();
    for (index, gate) in objects(new, "schedulingGates").enumerate() {
        let name = text(gate, "name");
        if !known.has(name) {
            let at = SPEC.child("schedulingGates");
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            causes.forbidden(&at.index(index).child("name"), &detail);
        }
    }
}

/// Where a gated pod goes may be narrowed.
fn while_gated(rest: &mut Members, old: &Members, causes: &mut Causes) {
    let (selected, before) = (child_or_empty(rest, "nodeSelector"), child_or_empty(old, "nodeSelector"));
    if !before.iter().all(|(key, value)| selected.get(key) == Some(value)) {
        let bad = rest.get("nodeSelector");
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        causes.invalid(&SPEC.child("nodeSelector"), bad, detail);
    }
    take_over(rest, old, "nodeSelector");
    let old_affinity = child_or_empty(old, "affinity");
    narrowed_affinity(
        child_or_empty(child_or_empty(rest, "affinity"), "nodeAffinity"),
        child_or_empty(old_affinity, "nodeAffinity"),
        causes,
    );
    if let Some(affinity) = child_mut(rest, "affinity") {
        take_over(affinity, old_affinity, "nodeAffinity");
        if affinity.is_empty() && !old.contains_key("affinity") {
            rest.remove("affinity");
        }
    } else if old_affinity.contains_key("nodeAffinity") {
        take_over(child_made(rest, "affinity"), old_affinity, "nodeAffinity");
    }
}

/// Terms stay as many as they are, and each may only ask for more.
fn narrowed_affinity(new: &Members, old: &Members, causes: &mut Causes) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = |affinity| objects(child_or_empty(affinity, REQUIRED), "nodeSelectorTerms");
    let (wanted, before): (Vec<&Members>, Vec<&Members>) = (terms(new).collect(), terms(old).collect());
    let at = SPEC.child("affinity");
    let at = at.child("nodeAffinity");
    let at = at.child(REQUIRED);
    let at = at.child("nodeSelectorTerms");
    if !before.is_empty() && before.len() != wanted.len() {
        let bad =
            internal::list_shown("NodeSelectorTerm", child_or_empty(new, REQUIRED), "nodeSelectorTerms");
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return causes.invalid(&at, bad, detail);
    }
    for (index, (term, before)) in wanted.iter().zip(before).enumerate() {
        if !asks_for_more(term, before) {
            let bad = internal::shown("NodeSelectorTerm", term);
            causes.invalid(&at.index(index), bad, "only additions are allowed (no mutations or deletions)");
        }
    }
}

fn asks_for_more(new: &Members, old: &Members) -> bool {
    const REQUIREMENT: (&str, &str) = ("core/v1", "NodeSelectorRequirement");
    let lists = ["matchExpressions", "matchFields"];
    let empty = |term: &Members| lists.iter().all(|name| list(term, name).is_empty());
    if empty(old) && !empty(new) {
        return false; // a term without requirements matches nothing, and goes on to
    }
    lists.iter().all(|name| {
        let before = objects(old, name);
        list(new, name).len() >= list(old, name).len()
            && objects(new, name).zip(before).all(|(new, old)| same_of(REQUIREMENT, new, old))
    })
}

fn ephemeral_containers(new: &Members, old: &Members, causes: &mut Causes) {
    if annotations::of_pod(old).contains_key(MIRROR) {
        return causes.forbidden(&Path::root(""), "static pods do not support ephemeral containers");
    }
    const TYPE: (&str, &str) = ("core/v1", "EphemeralContainer");
    let at = SPEC.child("ephemeralContainers");
    let (new, old) = (child_or_empty(new, "spec"), child_or_empty(old, "spec"));
    let wanted: Firsts<&str, &Members> =
        objects(new, "ephemeralContainers").map(|container| (text(container, "name"), container)).collect();
    let mut differences = internal::Differences::default();
    for before in objects(old, "ephemeralContainers") {
        let name = text(before, "name");
        match wanted.get(name) {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                causes.forbidden(&at, &detail);
            }
            Some(container) if !causes.is_full() && !same_of(TYPE, container, before) => {
                let detail = format!(
                    "existing ephemeral containers {name:?} may not be changed\n{}",
                    differences.between("EphemeralContainer", before, container)
                );
                causes.forbidden(&at, &detail);
            }
            Some(_) => {}
        }
    }
}
