//! What the authors of objects are told though the objects are let through, where several kinds have it in
//! common.
//!
//! In: objects that are valid. Out: warnings in kube-apiserver's words. Never: causes.
//!
//! Source: kubernetes v1.36.3 `pkg/api/{persistentvolume,persistentvolumeclaim,job}`, `registry/**/strategy.go`.

use super::address::cidr_warning;
use super::core::pod::warnings as pod;
use super::field::Path;
use super::rule::Update;
use super::value::{Members, child_or_empty, int, objects, text, texts};

/// Of what has a pod template, and a name that its pods get.
pub fn of_workload(object: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    if update.is_none() {
        pod::of_owner_name(object, out);
    }
    of_template(object, update, out);
}

/// Of what has a pod template: when it is new, or its spec is.
pub fn of_template(object: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    if is_of_interest(object, update) {
        let at = Path::root("spec");
        pod::of_template(
            child_or_empty(child_or_empty(object, "spec"), "template"),
            Some(&at.child("template")),
            out,
        );
    }
}

/// Whether a write made the spec what it is, by way of the object or of its Scale.
pub fn is_of_interest(object: &Members, update: Option<&Update<'_>>) -> bool {
    let generation = |object: &Members| int(child_or_empty(object, "metadata"), "generation");
    update.is_none_or(|update| !update.is_status() && generation(update.old) != generation(object))
}

/// Of a Job's spec, wherever it is.
pub fn of_job_spec(spec: &Members, at: &Path<'_>, out: &mut Vec<String>) {
    let is_large =
        int(spec, "completions").unwrap_or(0) > 100_000 && int(spec, "parallelism").unwrap_or(0) > 10_000;
    if is_large && text(spec, "completionMode") == "Indexed" {
        out.push(format!(
            "{at}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    pod::of_template(child_or_empty(spec, "template"), Some(&at.child("template")), out);
}

pub fn of_claim(claim: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    if update.is_some_and(Update::is_status) {
        return;
    }
    annotation(claim, "volume.beta.kubernetes.io/storage-class", USE_CLASS, out);
    pod::claim_spec(child_or_empty(claim, "spec"), &Path::root("spec"), out);
}

const USE_CLASS: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";
const USE_OPTIONS: &str = "deprecated since v1.31; use \"mountOptions\" attribute instead";

const OLD_SOURCES: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

pub fn of_volume(volume: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    if update.is_some_and(Update::is_status) {
        return;
    }
    annotation(volume, "volume.beta.kubernetes.io/storage-class", USE_CLASS, out);
    annotation(volume, "volume.beta.kubernetes.io/mount-options", USE_OPTIONS, out);
    let (spec, at) = (child_or_empty(volume, "spec"), Path::root("spec"));
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        out.push(format!(
            "{}: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.",
            at.child("persistentVolumeReclaimPolicy")
        ));
    }
    let required = child_or_empty(child_or_empty(spec, "nodeAffinity"), "required");
    let affinity_at = at.child("nodeAffinity");
    let required_at = affinity_at.child("required");
    let terms_at = required_at.child("nodeSelectorTerms");
    for (index, term) in objects(required, "nodeSelectorTerms").enumerate() {
        pod::node_term(term, pod::Values::AsTheyAre, &terms_at.index(index), out);
    }
    for (_, shown, why) in OLD_SOURCES.iter().filter(|(member, _, _)| spec.contains_key(*member)) {
        out.push(format!("{}: {why}", at.child(shown)));
    }
}

pub fn of_node(node: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    if update.is_some_and(Update::is_status) {
        return;
    }
    let (spec, at) = (child_or_empty(node, "spec"), Path::root("spec"));
    if spec.contains_key("configSource") {
        out.push("spec.configSource: the feature is removed".to_string());
    }
    if !text(spec, "externalID").is_empty() {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_string());
    }
    for (index, range) in texts(spec, "podCIDRs").enumerate() {
        out.extend(cidr_warning(range, &at.child("podCIDRs").index(index)));
    }
}

fn annotation(object: &Members, key: &str, why: &str, out: &mut Vec<String>) {
    if child_or_empty(child_or_empty(object, "metadata"), "annotations").contains_key(key) {
        out.push(format!("metadata.annotations[{key}]: {why}"));
    }
}
