//! PersistentVolumes.
//!
//! In: a PersistentVolume. Out: defaults, what it is stored as, causes. Never: what is on it.
//!
//! Source: kubernetes v1.36.3 `registry/core/persistentvolume`, `apis/core/validation`.

use forebay_apimachinery::quantity;
use serde_json::{Value, json};

use super::claim::{access_modes, class_name, volume_mode};
use super::pod::defaults::{network_source, round_up};
use super::pod::{node_selector, path_name, persistent_source};
use crate::field::{BadValue, Causes, Path};
use crate::internal;
use crate::meta::{IMMUTABLE, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::typed::{same_field_of, same_of};
use crate::value::{
    Members, child, child_made, child_mut, child_or_empty, default, default_text, objects, objects_mut, set,
    take_over, text, text_opt,
};

const SPEC: Path<'static> = Path::root("spec");
const RECLAIM: [&str; 3] = ["Delete", "Recycle", "Retain"];
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

pub fn defaults(volume: &mut Members) {
    let spec = child_made(volume, "spec");
    default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    default(spec, "volumeMode", "Filesystem");
    network_source(spec);
    if let Some(capacity) = child_mut(spec, "capacity") {
        round_up(capacity);
    }
    default_text(child_made(volume, "status"), "phase", "Pending");
}

pub fn prepare_create(volume: &mut Members, context: &Context<'_>) {
    set(volume, "status", Some(json!({"phase": "Pending", "lastPhaseTransitionTime": context.now})));
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    let old = update.old;
    if !update.is_status() {
        return take_over(new, old, "status");
    }
    take_over(new, old, "spec");
    const TIME: &str = "lastPhaseTransitionTime";
    let (status, old_status) = (child_made(new, "status"), child_or_empty(old, "status"));
    let same_phase = text(status, "phase") == text(old_status, "phase");
    if same_phase && !status.contains_key(TIME) {
        take_over(status, old_status, TIME);
    } else if !same_phase && (!status.contains_key(TIME) || status.get(TIME) == old_status.get(TIME)) {
        set(status, TIME, Some(context.now.into()));
    }
}

pub fn validate_create(volume: &Members, causes: &mut Causes) {
    let spec = child_or_empty(volume, "spec");
    access_modes(spec, "", &SPEC, causes, |_| {});
    capacity(spec, causes);
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !policy.is_empty() && !RECLAIM.contains(&policy) {
        causes.not_supported(&SPEC.child("persistentVolumeReclaimPolicy"), policy, &RECLAIM);
    }
    node_affinity(spec, causes);
    sources(spec, text(child_or_empty(volume, "metadata"), "name"), &SPEC, causes);
    class_name(text(spec, "storageClassName"), "storageClassName", &SPEC, causes);
    volume_mode(spec, &SPEC, causes);
    attributes_class(spec, causes);
}

/// The spec of a volume that stands inside another object, in place of a volume.
pub fn validate_inline(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    const INLINE: &str = "may not be specified in the context of inline volumes";
    let forbid_if = |given: bool, name: &str, causes: &mut Causes| {
        if given {
            causes.forbidden(&at.child(name), INLINE);
        }
    };
    forbid_if(spec.contains_key("claimRef"), "claimRef", causes);
    forbid_if(!child_or_empty(spec, "capacity").is_empty(), "capacity", causes);
    if !spec.contains_key("csi") {
        causes.required(&at.child("csi"), "has to be specified in the context of inline volumes");
    }
    access_modes(spec, "", at, causes, |_| {});
    if !matches!(text(spec, "persistentVolumeReclaimPolicy"), "" | "Retain") {
        let detail = "may only be Retain in the context of inline volumes";
        causes.forbidden(&at.child("persistentVolumeReclaimPolicy"), detail);
    }
    forbid_if(spec.contains_key("nodeAffinity"), "nodeAffinity", causes);
    sources(spec, "", at, causes);
    forbid_if(!text(spec, "storageClassName").is_empty(), "storageClassName", causes);
    if text_opt(spec, "volumeMode").is_some_and(|mode| mode != "Filesystem") {
        let detail = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        causes.forbidden(&at.child("volumeMode"), detail);
    }
}

fn node_affinity(spec: &Members, causes: &mut Causes) {
    let Some(affinity) = child(spec, "nodeAffinity") else { return };
    let at = SPEC.child("nodeAffinity");
    match child(affinity, "required") {
        Some(selector) => node_selector(selector, &at.child("required"), causes),
        None => causes.required(&at.child("required"), "must specify required node constraints"),
    }
}

/// Exactly one source, well made.
///
/// - `volume_name`: empty where the volume stands inside another object.
fn sources(spec: &Members, volume_name: &str, at: &Path<'_>, causes: &mut Causes) {
    let mut found = false;
    for name in SOURCES {
        let Some(source) = child(spec, name) else { continue };
        if found && name != "flexVolume" {
            let name = if name == "cephfs" { "cephFS" } else { name };
            causes.forbidden(&at.child(name), "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        persistent_source(name, source, volume_name, &at.child(path_name(name)), causes);
        if name == "local" && !spec.contains_key("nodeAffinity") {
            causes.required(&at.child("nodeAffinity"), "Local volume requires node affinity");
        }
    }
    if !found {
        causes.required(at, "must specify a volume type");
    }
    let is_root = |path: &str| path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "."));
    let recycled = text(spec, "persistentVolumeReclaimPolicy") == "Recycle";
    if recycled && child(spec, "hostPath").is_some_and(|source| is_root(text(source, "path"))) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        causes.forbidden(&at.child("persistentVolumeReclaimPolicy"), detail);
    }
}

fn capacity(spec: &Members, causes: &mut Causes) {
    let at = SPEC.child("capacity");
    let capacity = child_or_empty(spec, "capacity");
    if capacity.is_empty() {
        causes.required(&at, "");
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        causes.not_supported(&at, spec.get("capacity"), &["storage"]);
    }
    for (resource, size) in capacity {
        let nanos = quantity::of(size);
        if nanos < 0 {
            let whole = nanos.div_euclid(1_000_000_000).to_string();
            causes.invalid(&at.key(resource), BadValue::shown(whole), "must be a valid resource quantity");
        }
        if nanos <= 0 {
            causes.invalid(&at.key(resource), size, "must be greater than zero");
        }
    }
}

fn attributes_class(spec: &Members, causes: &mut Causes) {
    const NAME: &str = "volumeAttributesClassName";
    let Some(class) = text_opt(spec, NAME) else { return };
    if class.is_empty() {
        causes.required(&SPEC.child(NAME), "an empty string is disallowed");
    }
    class_name(class, NAME, &SPEC, causes);
    if child(spec, "csi").is_none() {
        causes.required(&SPEC.child("csi"), "has to be specified when using volumeAttributesClassName");
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    if update.is_status() {
        return validate_built_in_update(new, old, causes);
    }
    for _ in 0..2 {
        validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::Subdomain, causes);
        validate_create(new, causes);
    }
    let (spec, old_spec) = (child_or_empty(new, "spec"), child_or_empty(old, "spec"));
    if !SOURCES.iter().all(|name| same_source(spec, old_spec, name)) {
        let difference = internal::difference("PersistentVolumeSource", old_spec, spec);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        causes.forbidden(&SPEC.child("persistentvolumesource"), &detail);
    }
    if text_opt(spec, "volumeMode") != text_opt(old_spec, "volumeMode") {
        let bad = BadValue::encoded(spec.get("volumeMode"));
        causes.invalid(&Path::root("volumeMode"), bad, IMMUTABLE);
    }
    if !same_affinity(spec, old_spec) {
        let bad = child(spec, "nodeAffinity")
            .map_or(BadValue::Nil, |affinity| internal::shown("VolumeNodeAffinity", affinity));
        let detail = format!("{IMMUTABLE}, except for updating from beta label to GA");
        causes.invalid(&Path::root("nodeAffinity"), bad, &detail);
    }
    if old_spec.contains_key("volumeAttributesClassName") && !spec.contains_key("volumeAttributesClassName") {
        let detail = "update from non-nil value to nil is forbidden";
        causes.forbidden(&SPEC.child("volumeAttributesClassName"), detail);
    }
}

/// Affinity may be added, and keys that were renamed may take their new names.
fn same_affinity(spec: &Members, old: &Members) -> bool {
    const RENAMED: [(&str, &str); 5] = [
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ];
    let Some(mut before) = child(old, "nodeAffinity").cloned() else { return true };
    let Some(affinity) = child(spec, "nodeAffinity") else { return false };
    let keys = |affinity: &Members| -> Vec<String> {
        let terms = objects(child_or_empty(affinity, "required"), "nodeSelectorTerms");
        terms
            .flat_map(|term| objects(term, "matchExpressions"))
            .map(|of| text(of, "key").to_string())
            .collect()
    };
    let mut wanted = keys(affinity).into_iter();
    if let Some(required) = child_mut(&mut before, "required") {
        for term in objects_mut(required, "nodeSelectorTerms") {
            for expression in objects_mut(term, "matchExpressions") {
                let new = wanted.next().unwrap_or_default();
                if RENAMED.contains(&(text(expression, "key"), new.as_str())) {
                    set(expression, "key", Some(new.into()));
                }
            }
        }
    }
    same_of(("core/v1", "VolumeNodeAffinity"), affinity, &before)
}

/// The secret for expanding may be added to a CSI source that has none.
fn same_source(spec: &Members, old: &Members, name: &str) -> bool {
    const EXPAND: &str = "controllerExpandSecretRef";
    let mut wanted = spec.get(name).cloned();
    if let ("csi", Some(Value::Object(csi)), Some(old)) = (name, &mut wanted, child(old, name))
        && !old.contains_key(EXPAND)
    {
        csi.remove(EXPAND);
    }
    same_field_of(("core/v1", "PersistentVolumeSpec"), name, wanted.as_ref(), old.get(name))
}
