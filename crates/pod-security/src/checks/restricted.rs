//! What a pod has to give up, beyond the baseline.

use std::collections::BTreeSet;

use forebay_strategy::value::{child, child_or_empty, int, is_true, objects, text, texts};

use super::baseline::{is_seccomp, seccomp};
use super::{CheckedPod, Violation, containers, fault, is, plural, quoted, setters, uses};

pub fn escalation_anywhere(pod: &CheckedPod<'_>) -> Option<Violation> {
    let named = pod.named(|security| !is(security.get("allowPrivilegeEscalation"), false));
    let detail = containers(&named)
        .map(|named| format!("{named} must set securityContext.allowPrivilegeEscalation=false"));
    fault("allowPrivilegeEscalation != false", detail)
}

pub fn escalation(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { escalation_anywhere(pod) }
}

pub fn capabilities_anywhere(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut added: BTreeSet<String> = BTreeSet::new();
    // Once: for the whole object.
    let keeping = pod
        .named(|security| !texts(child_or_empty(security, "capabilities"), "drop").any(|name| name == "ALL"));
    let adding = pod.named(|security| {
        let bad =
            texts(child_or_empty(security, "capabilities"), "add").filter(|name| *name != "NET_BIND_SERVICE");
        bad.map(|name| added.insert(name.to_string())).count() > 0
    });
    let keeping = containers(&keeping)
        .map(|named| format!("{named} must set securityContext.capabilities.drop=[\"ALL\"]"));
    let adding = containers(&adding).map(|named| {
        format!("{named} must not include {} in securityContext.capabilities.add", quoted(&added))
    });
    let details: Vec<String> = keeping.into_iter().chain(adding).collect();
    fault("unrestricted capabilities", (!details.is_empty()).then(|| details.join("; ")))
}

pub fn capabilities(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { capabilities_anywhere(pod) }
}

/// What a volume may be made of.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// What else there is, the first that a volume has being what it is called.
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub fn volume_types(pod: &CheckedPod<'_>) -> Option<Violation> {
    let (mut names, mut types) = (Vec::new(), BTreeSet::new());
    for volume in objects(pod.spec, "volumes") {
        let has = |kind: &&str| child(volume, kind).is_some();
        // Few: the kinds of this table.
        if VOLUMES.iter().any(has) {
            continue;
        }
        names.push(text(volume, "name"));
        types.insert(OTHER_VOLUMES.into_iter().find(has).unwrap_or("unknown"));
    }
    let detail = (!names.is_empty()).then(|| {
        let (volumes, kinds) = (plural("volume", names.len()), plural("restricted volume type", types.len()));
        format!("{volumes} {} {} {kinds} {}", quoted(&names), uses(names.len()), quoted(&types))
    });
    fault("restricted volume types", detail)
}

pub fn root_anywhere(pod: &CheckedPod<'_>) -> Option<Violation> {
    let said = |security: &forebay_strategy::value::Members| security.get("runAsNonRoot").cloned();
    let by_pod = is(said(pod.security()).as_ref(), false);
    let named = pod.named(|security| is(said(security).as_ref(), false));
    let refused = setters(by_pod, &named)
        .map(|setting| format!("{setting} must not set securityContext.runAsNonRoot=false"));
    let silent = || {
        let is_said = is_true(pod.security(), "runAsNonRoot");
        let named = pod.named(|security| said(security).is_none() && !is_said);
        containers(&named).map(|named| format!("pod or {named} must set securityContext.runAsNonRoot=true"))
    };
    fault("runAsNonRoot != true", refused.or_else(silent))
}

pub fn root(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.has_own_users() { None } else { root_anywhere(pod) }
}

pub fn user_zero_anywhere(pod: &CheckedPod<'_>) -> Option<Violation> {
    let named = pod.named(|security| int(security, "runAsUser") == Some(0));
    let by_pod = int(pod.security(), "runAsUser") == Some(0);
    fault("runAsUser=0", setters(by_pod, &named).map(|setting| format!("{setting} must not set runAsUser=0")))
}

pub fn user_zero(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.has_own_users() { None } else { user_zero_anywhere(pod) }
}

pub fn no_seccomp_anywhere(pod: &CheckedPod<'_>) -> Option<Violation> {
    let profile = child(pod.security(), "seccompProfile");
    let is_said = profile.is_some_and(|profile| is_seccomp(text(profile, "type")));
    let silent = || {
        let named = pod.named(|security| child(security, "seccompProfile").is_none() && !is_said);
        let detail = containers(&named).map(|named| {
            format!(
                "pod or {named} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
            )
        });
        fault("seccompProfile", detail)
    };
    seccomp(pod).or_else(silent)
}

pub fn no_seccomp(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { no_seccomp_anywhere(pod) }
}
