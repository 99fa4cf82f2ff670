//! A pod's volumes.
//!
//! In: `volumes` of a pod's spec. Out: causes, and which of them are well made. Never: where they are
//! mounted.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use forebay_apimachinery::Seen;
use forebay_apimachinery::quantity;

use super::container::PULL_POLICIES;
use super::env::downward_file;
use super::mounts::{Known, descending_path};
use super::sources::{self, long_portal, one_source};
use crate::core::claim;
use crate::field::{Causes, Path};
use crate::format;
use crate::meta::of_template;
use crate::value::{Members, child, child_or_empty, int, list, objects, text};

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// In the order in which upstream counts them.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// The volumes of a pod.
///
/// - `pod_name`: empty in a template.
pub fn validate<'o>(spec: &'o Members, pod_name: &str, at: &Path<'_>, causes: &mut Causes) -> Known<'o> {
    let at = at.child("volumes");
    let mut known: Known<'o> = Known::with_capacity(list(spec, "volumes").len());
    let ephemeral: Seen<String> = objects(spec, "volumes")
        .filter(|volume| !pod_name.is_empty() && volume.contains_key("ephemeral"))
        .map(|volume| format!("{pod_name}-{}", text(volume, "name")))
        .collect();
    for (index, volume) in objects(spec, "volumes").enumerate() {
        let at = at.index(index);
        let before = causes.len();
        source(volume, pod_name, &at, causes);
        let name = text(volume, "name");
        match name {
            "" => causes.required(&at.child("name"), ""),
            name if format::is_dns1123_label(name) && name.len() <= 63 => {}
            name => causes.faults(&at.child("name"), name, format::dns1123_label(name)),
        }
        if known.contains_key(name) {
            causes.duplicate(&at.child("name"), name);
        }
        let claim = child(volume, "persistentVolumeClaim");
        if causes.len() == before {
            known.insert(name, claim.is_some() || volume.contains_key("ephemeral"));
        }
        if let Some(claim) = claim
            && ephemeral.has(text(claim, "claimName"))
        {
            let at = at.child("persistentVolumeClaim");
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            causes.invalid(&at.child("claimName"), text(claim, "claimName"), detail);
        }
    }
    known
}

fn source(volume: &Members, pod_name: &str, at: &Path<'_>, causes: &mut Causes) {
    let mut found = false;
    for name in SOURCES {
        let Some(source) = child(volume, name) else { continue };
        if let Some(detail) = (name == "iscsi").then(|| long_portal(source, text(volume, "name"))).flatten() {
            causes.invalid(&at.child("name"), text(volume, "name"), detail);
        }
        if found {
            let name = match name {
                "cephfs" => "cephFS",
                "downwardAPI" => "downwarAPI", // upstream's spelling
                name => name,
            };
            causes.forbidden(&at.child(name), "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        own_source(name, source, !pod_name.is_empty(), &at.child(sources::path_name(name)), causes);
        if name == "ephemeral" && !pod_name.is_empty() {
            let volume = text(volume, "name");
            let claim = format!("{pod_name}-{volume}");
            for fault in format::dns1123_subdomain(&claim) {
                causes.invalid(&at.child("name"), volume, &format!("PVC name {claim:?}: {fault}"));
            }
        }
    }
    if !found {
        causes.required(at, "must specify a volume type");
    }
}

fn own_source(name: &str, source: &Members, pod: bool, at: &Path<'_>, causes: &mut Causes) {
    match name {
        "emptyDir" => {
            if source.get("sizeLimit").is_some_and(|size| quantity::of(size) < 0) {
                causes.forbidden(&at.child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
            }
        }
        "gitRepo" => {
            required(source, "repository", at, causes);
            descending_path(text(source, "directory"), &at.child("directory"), causes);
        }
        "secret" => {
            required(source, "secretName", at, causes);
            mode(source, "defaultMode", at, causes);
            items(source, at, causes);
        }
        "configMap" => {
            required(source, "name", at, causes);
            mode(source, "defaultMode", at, causes);
            items(source, at, causes);
        }
        "persistentVolumeClaim" => required(source, "claimName", at, causes),
        "downwardAPI" => {
            mode(source, "defaultMode", at, causes);
            objects(source, "items").for_each(|file| downward(file, at, causes));
        }
        "projected" => {
            mode(source, "defaultMode", at, causes);
            projected(source, at, causes);
        }
        "ephemeral" => ephemeral(source, at, causes),
        "image" => image(source, pod, at, causes),
        "csi" => {
            one_source(name, source, at, causes);
            publish_secret(source, at, causes);
        }
        name => one_source(name, source, at, causes),
    }
}

fn publish_secret(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    let Some(secret) = child(source, "nodePublishSecretRef") else { return };
    match text(secret, "name") {
        "" => causes.required(&at.child("nodePublishSecretRef").child("name"), ""),
        name => causes.faults(&at.child("name"), name, format::dns1123_subdomain(name)),
    }
}

/// A template may leave the image to whoever fills it in.
fn image(source: &Members, of_pod: bool, at: &Path<'_>, causes: &mut Causes) {
    if of_pod {
        required(source, "reference", at, causes);
    }
    match text(source, "pullPolicy") {
        "" => causes.required(&at.child("pullPolicy"), ""),
        known if PULL_POLICIES.contains(&known) => {}
        other => causes.not_supported(&at.child("pullPolicy"), other, &PULL_POLICIES),
    }
}

fn required(source: &Members, name: &str, at: &Path<'_>, causes: &mut Causes) {
    if text(source, name).is_empty() {
        causes.required(&at.child(name), "");
    }
}

fn mode(source: &Members, name: &str, at: &Path<'_>, causes: &mut Causes) {
    if let Some(mode) = int(source, name).filter(|mode| !(0..=0o777).contains(mode)) {
        causes.invalid(&at.child(name), mode, MODE);
    }
}

fn items(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    for (index, item) in objects(source, "items").enumerate() {
        let at = at.child("items");
        let at = at.index(index);
        required(item, "key", &at, causes);
        required(item, "path", &at, causes);
        free_path(text(item, "path"), &at.child("path"), causes);
        mode(item, "mode", &at, causes);
    }
}

/// A path that stays below, and whose name the kubelet does not keep for itself.
fn free_path(path: &str, at: &Path<'_>, causes: &mut Causes) {
    descending_path(path, at, causes);
    if path.starts_with("..") && !path.starts_with("../") && path != ".." {
        causes.invalid(at, path, "must not start with '..'");
    }
}

fn downward(file: &Members, at: &Path<'_>, causes: &mut Causes) {
    required(file, "path", at, causes);
    free_path(text(file, "path"), &at.child("path"), causes);
    downward_file(file, at, causes);
    mode(file, "mode", at, causes);
}

fn projected(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    const KINDS: [&str; 6] =
        ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
    let mut paths = Seen::default();
    for (index, of) in objects(source, "sources").enumerate() {
        let list_at = at.child("sources");
        let item = list_at.index(index);
        for name in ["secret", "configMap"] {
            let Some(source) = child(of, name) else { continue };
            required(source, "name", &item.child(name), causes);
            items(source, &item.child(name), causes);
            for path in
                objects(source, "items").map(|item| text(item, "path")).filter(|path| !path.is_empty())
            {
                unique(path, text(source, "name"), &mut paths, at, causes);
            }
        }
        for file in objects(child_or_empty(of, "downwardAPI"), "items") {
            downward(file, &item.child("downwardAPI"), causes);
            let path = text(file, "path");
            if !path.is_empty() {
                unique(path, path, &mut paths, at, causes);
            }
        }
        if let Some(token) = child(of, "serviceAccountToken") {
            service_account_token(token, &item.child("serviceAccountToken"), at, causes);
        }
        if KINDS.into_iter().filter(|name| child(of, name).is_some()).count() > 1 {
            causes.forbidden(&item, "may not specify more than 1 volume type per source");
        }
    }
}

fn unique<'o>(path: &'o str, bad: &str, paths: &mut Seen<&'o str>, at: &Path<'_>, causes: &mut Causes) {
    if paths.again(path) {
        causes.invalid(at, bad, "conflicting duplicate paths");
    }
}

fn service_account_token(token: &Members, at: &Path<'_>, volume_at: &Path<'_>, causes: &mut Causes) {
    let seconds = int(token, "expirationSeconds").unwrap_or(0);
    if seconds < 600 {
        let detail = "may not specify a duration less than 10 minutes";
        causes.invalid(&at.child("expirationSeconds"), seconds, detail);
    }
    if seconds > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        causes.invalid(&at.child("expirationSeconds"), seconds, detail);
    }
    match text(token, "path") {
        "" => causes.required(&volume_at.child("path"), ""),
        path => free_path(path, &volume_at.child("path"), causes),
    }
}

fn ephemeral(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child("volumeClaimTemplate");
    let Some(template) = child(source, "volumeClaimTemplate") else { return causes.required(&at, "") };
    of_template(child_or_empty(template, "metadata"), &at.child("metadata"), causes);
    claim::validate_spec(child_or_empty(template, "spec"), &at.child("spec"), causes);
}
