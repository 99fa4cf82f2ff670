//! PersistentVolumeClaims.
//!
//! In: a PersistentVolumeClaim, or the spec of one inside a template. Out: defaults, what it is stored as,
//! causes. Never: binds it.
//!
//! Source: kubernetes v1.36.3 `registry/core/persistentvolumeclaim`, `api/persistentvolumeclaim`, `apis/core/validation`.

use forebay_apimachinery::quantity;
use forebay_apimachinery::selector::label_key_faults;
use serde_json::{Value, json};

use super::pod::defaults::{claim_spec, round_up};
use super::pod::resources::quantity_value;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::meta::{IMMUTABLE, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::selector;
use crate::typed::same_of;
use crate::value::{
    Members, child, child_made, child_mut, child_or_empty, default_text, entries, list, set, take_over, text,
    text_opt, texts,
};

pub const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
pub const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const SPEC: Path<'static> = Path::root("spec");

pub fn defaults(claim: &mut Members) {
    claim_spec(child_made(claim, "spec"));
    let status = child_made(claim, "status");
    default_text(status, "phase", "Pending");
    for name in ["capacity", "allocatedResources"] {
        if let Some(list) = child_mut(status, name) {
            round_up(list);
        }
    }
}

pub fn prepare_create(claim: &mut Members, _: &Context<'_>) {
    set(claim, "status", Some(json!({"phase": "Pending"})));
    let spec = child_made(claim, "spec");
    drop_foreign_reference(spec, None);
    drop_other_source(spec, None);
    align_sources(spec);
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    let old = update.old;
    if update.is_status() {
        return take_over(new, old, "spec");
    }
    take_over(new, old, "status");
    let old_spec = child_or_empty(old, "spec");
    let spec = child_made(new, "spec");
    drop_foreign_reference(spec, Some(old_spec));
    drop_other_source(spec, Some(old_spec));
    align_sources(spec);
}

/// A source in another namespace is behind a gate that is off.
fn drop_foreign_reference(spec: &mut Members, old: Option<&Members>) {
    let foreign = child(spec, "dataSourceRef").is_some_and(|source| !text(source, "namespace").is_empty());
    if foreign && !old.is_some_and(|old| old.contains_key("dataSourceRef")) {
        spec.remove("dataSourceRef");
    }
}

/// The old field takes claims and snapshots alone; anything else in it is dropped, as it always was.
fn drop_other_source(spec: &mut Members, old: Option<&Members>) {
    if old.is_some_and(|old| old.contains_key("dataSource")) || spec.contains_key("dataSourceRef") {
        return;
    }
    let Some(source) = child(spec, "dataSource") else { return };
    let known = match text(source, "kind") {
        "PersistentVolumeClaim" => text(source, "apiGroup").is_empty(),
        "VolumeSnapshot" => text(source, "apiGroup") == "snapshot.storage.k8s.io",
        _ => false,
    };
    if !known {
        spec.remove("dataSource");
    }
}

/// Both fields say the same where they can.
fn align_sources(spec: &mut Members) {
    let reference = |source: &Members| {
        let members = source.iter().filter(|(name, _)| *name != "namespace");
        Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    match (child(spec, "dataSource"), child(spec, "dataSourceRef")) {
        (Some(source), None) => {
            let copy = reference(source);
            spec.insert("dataSourceRef".into(), copy);
        }
        (None, Some(source)) if text(source, "namespace").is_empty() => {
            let copy = reference(source);
            spec.insert("dataSource".into(), copy);
        }
        _ => {}
    }
}

pub fn validate_create(claim: &Members, causes: &mut Causes) {
    validate_spec(child_or_empty(claim, "spec"), &SPEC, causes);
}

/// The spec of a claim, wherever it stands.
pub fn validate_spec(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    access_modes(spec, "at least 1 access mode is required", at, causes, |causes| {
        if let Some(selector) = child(spec, "selector") {
            selector::validate(selector, &at.child("selector"), causes);
        }
    });
    let requests = child_or_empty(child_or_empty(spec, "resources"), "requests");
    let storage_at = at.child("resources");
    let storage_at = storage_at.key("storage");
    match requests.get("storage") {
        None => causes.required(&storage_at, ""),
        Some(storage) if quantity::of(storage) <= 0 => {
            causes.invalid(&storage_at, storage, "must be greater than zero");
        }
        Some(storage) => quantity_value("storage", storage, &storage_at, causes),
    }
    class_name(text(spec, "storageClassName"), "storageClassName", at, causes);
    volume_mode(spec, at, causes);
    for name in ["dataSource", "dataSourceRef"] {
        if let Some(of) = child(spec, name) {
            source(of, &at.child(name), causes);
        }
    }
    if let (Some(of), Some(reference)) = (child(spec, "dataSource"), child(spec, "dataSourceRef")) {
        let is_same = ["apiGroup", "kind", "name"].iter().all(|name| text(of, name) == text(reference, name));
        // Upstream shows its own path where the value belongs.
        let shown = serde_json::json!({});
        if !text(reference, "namespace").is_empty() {
            causes.invalid(at, &shown, "may not be specified when dataSourceRef.namespace is specified");
        } else if !is_same {
            causes.invalid(at, &shown, "must match dataSourceRef");
        }
    }
    class_name(text(spec, "volumeAttributesClassName"), "volumeAttributesClassName", at, causes);
}

/// Access modes; `between` runs where upstream looks at something else in the middle.
pub fn access_modes(
    spec: &Members,
    none: &str,
    at: &Path<'_>,
    causes: &mut Causes,
    between: impl FnOnce(&mut Causes),
) {
    let at = at.child("accessModes");
    if list(spec, "accessModes").is_empty() {
        causes.required(&at, none);
    }
    between(causes);
    for mode in texts(spec, "accessModes").filter(|mode| !ACCESS_MODES.contains(mode)) {
        causes.not_supported(&at, mode, &ACCESS_MODES);
    }
    let alone = texts(spec, "accessModes").any(|mode| mode == "ReadWriteOncePod");
    let others =
        texts(spec, "accessModes").any(|mode| mode != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode));
    if alone && others {
        causes.forbidden(&at, "may not use ReadWriteOncePod with other access modes");
    }
}

/// The name of a storage class or the like.
pub fn class_name(class: &str, name: &str, at: &Path<'_>, causes: &mut Causes) {
    if !class.is_empty() {
        causes.faults(&at.child(name), class, format::dns1123_subdomain(class));
    }
}

pub fn volume_mode(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    if let Some(mode) = text_opt(spec, "volumeMode").filter(|mode| !VOLUME_MODES.contains(mode)) {
        causes.not_supported(&at.child("volumeMode"), mode, &VOLUME_MODES);
    }
}

fn source(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    for name in ["name", "kind"] {
        if text(source, name).is_empty() {
            causes.required(&at.child(name), "");
        }
    }
    let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        causes.invalid(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
    if !group.is_empty() {
        causes.faults(&at.child("apiGroup"), group, format::dns1123_subdomain(group));
    }
    let namespace = text(source, "namespace");
    if !namespace.is_empty() {
        causes.faults(&at.child("namespace"), namespace, format::dns1123_label(namespace));
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    if update.is_status() {
        return validate_status(new, causes);
    }
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate_create(new, causes);
    let (spec, old_spec) = (child_or_empty(new, "spec"), child_or_empty(old, "spec"));
    if !same_class_annotation(new, old) {
        let annotations = child_or_empty(child_or_empty(new, "metadata"), "annotations");
        let at = Path::root("metadata");
        let at = at.child("annotations");
        causes.invalid(&at.child(BETA_CLASS), text(annotations, BETA_CLASS), IMMUTABLE);
    }
    if let Some(difference) = forbidden_change(spec, old_spec, new, old) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                      bound claims";
        causes.forbidden(&SPEC, &format!("{detail}\n{difference}"));
    }
    shrinks(spec, old_spec, old, causes);
    if text_opt(spec, "volumeMode") != text_opt(old_spec, "volumeMode") {
        causes.invalid(&Path::root("volumeMode"), BadValue::encoded(spec.get("volumeMode")), IMMUTABLE);
    }
    attributes_class(spec, old_spec, old, causes);
}

fn annotation(object: &Members) -> Option<&str> {
    text_opt(child_or_empty(child_or_empty(object, "metadata"), "annotations"), BETA_CLASS)
}

fn class_moved_from_annotation(new: &Members, old: &Members) -> bool {
    let class = |object| text_opt(child_or_empty(object, "spec"), "storageClassName");
    annotation(old).is_some()
        && class(old).is_none()
        && class(new) == annotation(old)
        && (annotation(new).is_none() || annotation(new) == annotation(old))
}

fn same_class_annotation(new: &Members, old: &Members) -> bool {
    class_moved_from_annotation(new, old) || annotation(new).unwrap_or("") == annotation(old).unwrap_or("")
}

/// What changes besides what may: the volume's name and the class, once; sizes and attributes of bound
/// claims.
fn forbidden_change(spec: &Members, old_spec: &Members, new: &Members, old: &Members) -> Option<String> {
    const TYPE: (&str, &str) = ("core/v1", "PersistentVolumeClaimSpec");
    let same_besides_the_selector = || {
        let (wanted, before) = compared((spec, new), (old_spec, old), false);
        same_of(TYPE, &wanted, &before)
    };
    // The one member that may be large is copied for nothing but a message.
    if spec.get("selector") == old_spec.get("selector") && same_besides_the_selector() {
        return None;
    }
    let (wanted, before) = compared((spec, new), (old_spec, old), true);
    (!same_of(TYPE, &wanted, &before))
        .then(|| internal::difference("PersistentVolumeClaimSpec", &before, &wanted))
}

/// Both specs, with what may change made alike.
fn compared(
    (spec, new): (&Members, &Members),
    (old_spec, old): (&Members, &Members),
    with_selector: bool,
) -> (Members, Members) {
    let copied = |spec: &Members| -> Members {
        let members = spec.iter().filter(|(name, _)| with_selector || *name != "selector");
        members.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let (mut wanted, mut before) = (copied(spec), copied(old_spec));
    align_sources(&mut before);
    if text(old_spec, "volumeName").is_empty() {
        take_over(&mut before, spec, "volumeName");
    }
    let class = text_opt(spec, "storageClassName");
    let given = class.is_some()
        && !old_spec.contains_key("storageClassName")
        && annotation(old).is_none_or(|annotated| Some(annotated) == class);
    if given || class_moved_from_annotation(new, old) {
        wanted.remove("storageClassName");
    }
    if text(child_or_empty(new, "status"), "phase") == "Bound" {
        let storage =
            child_or_empty(child_or_empty(&before, "resources"), "requests").get("storage").cloned();
        if let Some(requests) =
            child_mut(&mut wanted, "resources").and_then(|resources| child_mut(resources, "requests"))
        {
            set(requests, "storage", storage);
        }
        take_over(&mut wanted, &before, "volumeAttributesClassName");
    }
    (wanted, before)
}

fn shrinks(spec: &Members, old_spec: &Members, old: &Members, causes: &mut Causes) {
    let size = |list: &Members| list.get("storage").map_or(0, quantity::of);
    let requested = |spec| size(child_or_empty(child_or_empty(spec, "resources"), "requests"));
    let capacity = size(child_or_empty(child_or_empty(old, "status"), "capacity"));
    if requested(spec) < requested(old_spec) && requested(spec) <= capacity {
        let at = SPEC.child("resources");
        let at = at.child("requests");
        causes.forbidden(&at.child("storage"), "field can not be less than status.capacity");
    }
}

fn attributes_class(spec: &Members, old_spec: &Members, old: &Members, causes: &mut Causes) {
    const NAME: &str = "volumeAttributesClassName";
    let applied = child_or_empty(old, "status").contains_key("currentVolumeAttributesClassName");
    if text_opt(spec, NAME) == text_opt(old_spec, NAME) || !applied {
        return;
    }
    let to = match text_opt(spec, NAME) {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let detail =
        format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
    causes.forbidden(&SPEC.child(NAME), &detail);
}

fn validate_status(claim: &Members, causes: &mut Causes) {
    let (status, at) = (child_or_empty(claim, "status"), Path::root("status"));
    for (resource, size) in child_or_empty(status, "capacity") {
        not_negative_size(size, &at.child("capacity").key(resource), causes);
    }
    resizes(status, &at.child("allocatedResourceStatuses"), causes);
    let at = at.child("allocatedResources");
    for (resource, size) in child_or_empty(status, "allocatedResources") {
        let found = causes.len();
        resource_key(resource, &at, causes);
        if causes.len() == found {
            not_negative_size(size, &at.key(resource), causes);
        }
        if causes.len() == found {
            quantity_value("storage", size, &at.key(resource), causes);
        }
    }
}

fn not_negative_size(size: &Value, at: &Path<'_>, causes: &mut Causes) {
    if quantity::of(size) < 0 {
        let whole = quantity::of(size).div_euclid(1_000_000_000);
        causes.invalid(at, BadValue::shown(whole.to_string()), "must be a valid resource quantity");
    }
}

/// What becomes of the resizing of each resource.
fn resizes(status: &Members, at: &Path<'_>, causes: &mut Causes) {
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    for (resource, state) in entries(status, "allocatedResourceStatuses") {
        resource_key(resource, at, causes);
        if !STATES.contains(&state) {
            causes.not_supported(at, resource, &STATES);
        }
    }
}

/// Of the resources without a domain, and of Kubernetes' own, a claim has one.
fn resource_key(resource: &str, at: &Path<'_>, causes: &mut Causes) {
    let faults = label_key_faults(resource);
    let is_native = !resource.contains('/') || resource.contains("kubernetes.io/");
    if faults.is_empty() && is_native && resource != "storage" {
        causes.not_supported(at, resource, &["storage"]);
    }
    causes.faults(at, resource, faults);
}
