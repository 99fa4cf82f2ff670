//! What NodeRestriction finds in objects: what a pod reaches for, labels that are not a node's to write.
//!
//! In: trees. Out: names in upstream's words, whether two are the same. Never: looks anything up.
//!
//! Source: kubernetes v1.36.3 `pkg/api/pod/util.go` (`HasAPIObjectReference`); kubelet v0.36.3
//! `pkg/apis/well_known_labels.go`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::pod_secrets::names_a_secret;
use super::service_account::items;

/// Labels that a kubelet may write of those that Kubernetes has a meaning for.
const KUBELET_LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// What of the API a pod reaches for, in upstream's words.
///
/// # Errors
/// A volume that is of no known kind.
pub fn referenced(spec: &Value) -> Result<Option<&'static str>, String> {
    if !text(spec, "serviceAccountName").is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if names_a_secret(spec) {
        return Ok(Some("secrets"));
    }
    if names_a_config_map(spec) {
        return Ok(Some("configmaps"));
    }
    if items(&spec["resourceClaims"]).next().is_some() {
        return Ok(Some("resourceclaims"));
    }
    for volume in items(&spec["volumes"]) {
        let has = |source: &str| volume[source].is_object();
        let name = text(volume, "name");
        if HARMLESS_SOURCES.iter().any(|source| has(source)) {
            continue;
        }
        if let Some((_, what)) = SOURCES.iter().find(|(source, _)| has(source)) {
            return Ok(Some(what));
        }
        if !has("projected") {
            return Err(format!("unknown volume type for volume  {name:?}"));
        }
        for source in items(&volume["projected"]["sources"]) {
            if let Some((_, what)) = PROJECTED.iter().find(|(of, _)| source[of].is_object()) {
                return Ok(Some(what));
            }
            if !source["downwardAPI"].is_object() {
                return Err(format!("unknown source for projected volume {name:?}"));
            }
        }
    }
    Ok(None)
}

/// Volumes that take nothing from the API.
const HARMLESS_SOURCES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

const SOURCES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];

const PROJECTED: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

fn names_a_config_map(spec: &Value) -> bool {
    let of_container = |container: &Value| {
        let in_env =
            items(&container["env"]).any(|variable| variable["valueFrom"]["configMapKeyRef"].is_object());
        in_env || items(&container["envFrom"]).any(|source| source["configMapRef"].is_object())
    };
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let in_containers = lists.iter().flat_map(|list| items(&spec[*list])).any(of_container);
    let in_volumes = items(&spec["volumes"]).any(|volume| {
        volume["configMap"].is_object()
            || items(&volume["projected"]["sources"]).any(|source| source["configMap"].is_object())
    });
    in_containers || in_volumes
}

/// Labels that are other than they were and that a node may not write, in order.
pub fn forbidden_labels<'l>(new: &'l Value, old: &'l Value) -> Vec<&'l str> {
    let empty = Map::new();
    let of = |labels: &'l Value| labels.as_object();
    let (new, old) = (of(new), of(old));
    let all: BTreeSet<&str> = new.into_iter().chain(old).flat_map(Map::keys).map(String::as_str).collect();
    let value =
        |labels: Option<&'l Map<String, Value>>, key: &str| labels.unwrap_or(&empty).get(key).cloned();
    all.into_iter().filter(|key| value(new, key) != value(old, key) && is_forbidden(key)).collect()
}

fn is_forbidden(label: &str) -> bool {
    let namespace = label.split_once('/').map_or("", |(namespace, _)| namespace);
    let is_within =
        |of: &str| namespace == of || namespace.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    if is_within("node-restriction.kubernetes.io") {
        return true;
    }
    let is_of_kubelet = KUBELET_LABELS.contains(&label)
        || is_within("kubelet.kubernetes.io")
        || is_within("node.kubernetes.io");
    (is_within("kubernetes.io") || is_within("k8s.io")) && !is_of_kubelet
}

/// Whether two values are the same to who does not tell nothing from empty.
pub fn is_same(one: &Value, other: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(all) => all.is_empty(),
        Value::Array(all) => all.is_empty(),
        _ => false,
    };
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let of = |all: &'_ Map<String, Value>, key: &str| all.get(key).cloned().unwrap_or_default();
            keys.into_iter().all(|key| match (one.get(key), other.get(key)) {
                (Some(one), Some(other)) => is_same(one, other),
                _ => is_empty(&of(one, key)) && is_empty(&of(other, key)),
            })
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (one, other) => one == other || (is_empty(one) && is_empty(other)),
    }
}

pub fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_that_kubernetes_has_a_meaning_for_are_not_a_nodes_to_write() {
        for (label, want) in [
            ("example.com/x", false),
            ("x", false),
            ("kubernetes.io/hostname", false),
            ("topology.kubernetes.io/zone", false),
            ("node.kubernetes.io/x", false),
            ("a.kubelet.kubernetes.io/x", false),
            ("node-role.kubernetes.io/master", true),
            ("k8s.io/x", true),
            ("a.k8s.io/x", true),
            ("ak8s.io/x", false),
            ("node-restriction.kubernetes.io/x", true),
            ("a.node-restriction.kubernetes.io/x", true),
        ] {
            let labels = json!({ label: "v", "same.k8s.io/x": "1" });
            let old = json!({ "same.k8s.io/x": "1" });
            assert_eq!(!forbidden_labels(&labels, &old).is_empty(), want, "{label}");
            assert_eq!(!forbidden_labels(&old, &labels).is_empty(), want, "{label} goes");
        }
        assert!(forbidden_labels(&Value::Null, &Value::Null).is_empty());
    }

    #[test]
    fn what_a_pod_reaches_for_is_named_as_upstream_names_it() {
        let volume = |source: Value| json!({ "volumes": [source] });
        for (spec, want) in [
            (json!({ "containers": [{ "name": "c" }] }), Ok(None)),
            (json!({ "serviceAccountName": "a" }), Ok(Some("serviceaccounts"))),
            (json!({ "imagePullSecrets": [{ "name": "s" }] }), Ok(Some("secrets"))),
            (
                json!({ "containers": [{ "envFrom": [{ "configMapRef": { "name": "m" } }] }] }),
                Ok(Some("configmaps")),
            ),
            (json!({ "resourceClaims": [{ "name": "r" }] }), Ok(Some("resourceclaims"))),
            (volume(json!({ "name": "v", "hostPath": {} })), Ok(None)),
            (
                volume(json!({ "name": "v", "csi": { "driver": "d" } })),
                Ok(Some("csidrivers (via CSI volumes)")),
            ),
            (volume(json!({ "name": "v", "persistentVolumeClaim": {} })), Ok(Some("persistentvolumeclaims"))),
            (volume(json!({ "name": "v", "projected": { "sources": [{ "downwardAPI": {} }] } })), Ok(None)),
            (
                volume(json!({ "name": "v", "projected": { "sources": [{ "serviceAccountToken": {} }] } })),
                Ok(Some("serviceaccounts (via projected volumes)")),
            ),
            (volume(json!({ "name": "v" })), Err("unknown volume type for volume  \"v\"".to_owned())),
        ] {
            assert_eq!(referenced(&spec), want, "{spec}");
        }
    }

    #[test]
    fn nothing_and_empty_are_the_same() {
        for (one, other, want) in [
            (json!({ "a": [] }), json!({}), true),
            (json!({ "a": { "b": null } }), json!({ "a": {} }), true),
            (json!({ "a": 1 }), json!({ "a": 1 }), true),
            (json!({ "a": 1 }), json!({}), false),
            (json!({ "a": "" }), json!({}), false),
            (json!([1, 2]), json!([2, 1]), false),
            (json!(null), json!({}), true),
        ] {
            assert_eq!((is_same(&one, &other), is_same(&other, &one)), (want, want), "{one} {other}");
        }
    }
}
