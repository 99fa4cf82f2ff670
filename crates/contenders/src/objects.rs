//! What the server is filled with: pods, or objects of other sizes.
//!
//! In: a kind of load, and a number. Out: what to send where. A batch is what one client creates: a
//! workload's pods, or some objects of another kind. Never: an object that depends on who creates it or when,
//! but for its owner's uid.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::draw::Draw;
use crate::pods::{self, Workload};

/// What the objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objects {
    /// About 8 KB, with status.
    Pods,
    /// About 0.5 KB: heartbeats of nodes.
    Leases,
    /// About 1 KB: small configuration.
    ConfigMaps,
    /// About 100 KB and 1 MB: charts' releases, which repeat themselves as text does.
    Secrets100K,
    Secrets1M,
    /// About 100 KB of random base64, which nothing compresses well: the worst case.
    RandomSecrets,
}

/// An object to create.
#[derive(Debug)]
pub struct Made {
    /// Of its collection.
    pub path: String,
    pub name: String,
    pub body: Bytes,
    /// A merge patch of its status, where it has any.
    pub status: Option<Bytes>,
}

/// Objects of another kind than pods that one client creates in a row.
const BATCH: usize = 16;

impl Objects {
    pub const ALL: [Objects; 6] = [
        Objects::Pods,
        Objects::Leases,
        Objects::ConfigMaps,
        Objects::Secrets100K,
        Objects::Secrets1M,
        Objects::RandomSecrets,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Objects::Pods => "pods",
            Objects::Leases => "leases",
            Objects::ConfigMaps => "configmaps",
            Objects::Secrets100K => "secrets-100k",
            Objects::Secrets1M => "secrets-1m",
            Objects::RandomSecrets => "random-secrets",
        }
    }

    /// What they are, in words.
    pub fn about(self) -> &'static str {
        match self {
            Objects::Pods => "pods of about 8 KB",
            Objects::Leases => "Leases of about 0.5 KB",
            Objects::ConfigMaps => "ConfigMaps of about 1 KB",
            Objects::Secrets100K => "Secrets of about 100 KB",
            Objects::Secrets1M => "Secrets of about 1 MB",
            Objects::RandomSecrets => "Secrets of about 100 KB of random base64",
        }
    }

    /// Path of the collection in all namespaces.
    pub fn path(self) -> &'static str {
        match self {
            Objects::Pods => "/api/v1/pods",
            Objects::Leases => "/apis/coordination.k8s.io/v1/leases",
            Objects::ConfigMaps => "/api/v1/configmaps",
            Objects::Secrets100K | Objects::Secrets1M | Objects::RandomSecrets => "/api/v1/secrets",
        }
    }

    /// Path of the collection in one namespace.
    pub fn path_in(self, namespace: &str) -> String {
        let (group, resource) = self.path().rsplit_once('/').unwrap_or_default();
        format!("{group}/namespaces/{namespace}/{resource}")
    }

    /// How many of them are a page of some megabytes.
    pub fn page(self) -> usize {
        match self {
            Objects::Pods => 1_000,
            Objects::Leases | Objects::ConfigMaps => 5_000,
            Objects::Secrets100K | Objects::RandomSecrets => 100,
            Objects::Secrets1M => 10,
        }
    }

    /// Batches that `size` objects take.
    pub fn batches(self, size: usize) -> usize {
        match self {
            Objects::Pods => pods::workloads(size),
            _ => size.div_ceil(BATCH),
        }
    }

    /// What has to be there before the objects of a batch: namespace and body of a ReplicaSet.
    pub fn owner(self, batch: usize) -> Option<(String, Bytes)> {
        let workload = (self == Objects::Pods).then(|| Workload::new(batch))?;
        Some((workload.namespace.clone(), workload.replica_set()))
    }

    /// The objects of a batch that are among the first `size`; `owner` is the uid of what [`Objects::owner`]
    /// gave.
    pub fn batch(self, batch: usize, size: usize, owner: &str) -> Vec<Made> {
        if self == Objects::Pods {
            let workload = Workload::new(batch);
            let path = self.path_in(&workload.namespace);
            let made = |pod: pods::Pod| Made {
                path: path.clone(),
                name: pod.name,
                body: pod.body,
                status: Some(pod.status),
            };
            return workload.pods(size, owner).map(made).collect();
        }
        (batch * BATCH..size.min((batch + 1) * BATCH)).map(|index| self.other(index)).collect()
    }

    fn other(self, index: usize) -> Made {
        let mut draw = Draw::of(self.name(), index as u64);
        let name =
            format!("{}-{}-{index:06}", draw.pick(&["app", "node", "release", "team"]), draw.letters(5));
        let metadata = json!({"name": name, "labels": {
            "app.kubernetes.io/name": format!("app-{:03}", index % 200), "tier": draw.pick(&["backend", "frontend", "data"])},
            "annotations": {"checksum/config": draw.hex(64)}});
        let body = match self {
            Objects::Leases => lease(&metadata, &mut draw),
            Objects::ConfigMaps => config_map(&metadata, &mut draw),
            Objects::Secrets100K => secret(&metadata, prose(&mut draw, 74 << 10)),
            Objects::Secrets1M => secret(&metadata, prose(&mut draw, 740 << 10)),
            Objects::Pods | Objects::RandomSecrets => secret(&metadata, draw.bytes(74 << 10)),
        };
        let path = self.path_in(&pods::namespace(index));
        Made { path, name, body: Bytes::from(body.to_string()), status: None }
    }
}

fn lease(metadata: &Value, draw: &mut Draw) -> Value {
    let holder = format!("{}_{}", draw.letters(8), draw.hex(32));
    let micros = draw.below(1_000_000);
    json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": {
        "holderIdentity": holder, "leaseDurationSeconds": 40,
        "renewTime": format!("2026-06-{:02}T12:00:{:02}.{micros:06}Z", draw.below(28) + 1, draw.below(60))}})
}

fn config_map(metadata: &Value, draw: &mut Draw) -> Value {
    let text = String::from_utf8_lossy(&prose(draw, 600)).into_owned();
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata,
           "data": {"config.yaml": text, "region": draw.pick(&["eu-1", "us-1"])}})
}

fn secret(metadata: &Value, data: Vec<u8>) -> Value {
    json!({"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "type": "Opaque",
           "data": {"release": STANDARD.encode(data)}})
}

/// Lines of settings: words that come again and values that do not.
fn prose(draw: &mut Draw, bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "replicas",
        "image",
        "timeout",
        "endpoint",
        "enabled",
        "resources",
        "schedule",
        "storage",
        "policy",
        "limits",
        "requests",
        "affinity",
    ];
    let mut text = String::with_capacity(bytes + 80);
    while text.len() < bytes {
        let (first, second) = (draw.pick(&WORDS), draw.pick(&WORDS));
        text += &format!("{first}.{second}: \"{}-{}\"\n", draw.pick(&WORDS), draw.hex(6));
    }
    text.truncate(bytes);
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ratio::block_ratio;

    fn all(objects: Objects, size: usize) -> Vec<Made> {
        (0..objects.batches(size)).flat_map(|batch| objects.batch(batch, size, "uid")).collect()
    }

    #[test]
    fn batches_have_as_many_objects_as_asked_for_each_with_a_name_of_its_own() {
        for objects in Objects::ALL {
            for size in [0, 1, 17, 40] {
                let all = all(objects, size);
                let names: BTreeSet<_> = all.iter().map(|made| (&made.path, &made.name)).collect();
                assert_eq!((all.len(), names.len()), (size, size), "{objects:?}");
            }
        }
    }

    #[test]
    fn objects_have_the_size_that_they_are_named_for() {
        let sizes = [
            (Objects::Leases, 350..600),
            (Objects::ConfigMaps, 800..1_200),
            (Objects::Secrets100K, 95_000..110_000),
            (Objects::Secrets1M, 950_000..1_100_000),
            (Objects::RandomSecrets, 95_000..110_000),
        ];
        for (objects, sizes) in sizes {
            for made in all(objects, 5) {
                assert!(sizes.contains(&made.body.len()), "{objects:?}: {}", made.body.len());
                assert!(serde_json::from_slice::<Value>(&made.body).is_ok());
            }
        }
    }

    #[test]
    fn random_secrets_do_not_compress_and_the_others_do() {
        let ratio = |objects| {
            let all = all(objects, 40);
            block_ratio(all.iter().map(|made| &made.body[..]))
        };
        assert!((1.2..1.4).contains(&ratio(Objects::RandomSecrets)), "{}", ratio(Objects::RandomSecrets));
        for objects in [Objects::Leases, Objects::ConfigMaps, Objects::Secrets100K] {
            assert!((1.5..6.0).contains(&ratio(objects)), "{objects:?}: {}", ratio(objects));
        }
    }

    #[test]
    fn a_collection_is_found_in_one_namespace_and_in_all() {
        assert_eq!(Objects::Leases.path_in("a"), "/apis/coordination.k8s.io/v1/namespaces/a/leases");
        assert_eq!(Objects::Pods.path_in("a"), "/api/v1/namespaces/a/pods");
    }
}
