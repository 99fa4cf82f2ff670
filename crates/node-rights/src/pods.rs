//! What a pod leads its node to.
//!
//! In: the JSON of a pod. Out: the node that it is bound to, and the objects of its namespace that it names.
//! A mirror of a node's own pod names none: who makes one must not gain anything by it.
//!
//! Source: kubernetes v1.36.3 `pkg/api/v1/pod/util.go`; dynamic-resource-allocation v0.36.3
//! `resourceclaim/resourceclaim.go`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::graph::Related;

const MIRROR: &str = "kubernetes.io/config.mirror";

/// See the module's doc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLinks {
    pub(crate) node: String,
    /// Of its namespace; in order, each once.
    pub(crate) named: Vec<(Related, String)>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Pod {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    annotations: BTreeMap<String, IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
    service_account_name: String,
    image_pull_secrets: Vec<Named>,
    init_containers: Vec<Container>,
    containers: Vec<Container>,
    ephemeral_containers: Vec<Container>,
    volumes: Vec<Volume>,
    resource_claims: Vec<PodClaim>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    resource_claim_statuses: Vec<ClaimStatus>,
    extended_resource_claim_status: Option<ClaimStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    env: Vec<Variable>,
    env_from: Vec<References>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Variable {
    value_from: References,
}

/// Of a variable, of many, or of a projected volume.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct References {
    secret_key_ref: Named,
    config_map_key_ref: Named,
    secret_ref: Named,
    config_map_ref: Named,
    secret: Named,
    config_map: Named,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    name: String,
    azure_file: Source,
    cephfs: Source,
    cinder: Source,
    config_map: Source,
    csi: Source,
    ephemeral: Option<IgnoredAny>,
    flex_volume: Source,
    iscsi: Source,
    persistent_volume_claim: Source,
    projected: Projected,
    rbd: Source,
    #[serde(rename = "scaleIO")]
    scale_io: Source,
    secret: Source,
    storageos: Source,
}

/// What any source has that names something.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    name: String,
    claim_name: String,
    secret_name: String,
    secret_ref: Named,
    node_publish_secret_ref: Named,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Projected {
    sources: Vec<References>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodClaim {
    name: String,
    resource_claim_name: Option<String>,
    resource_claim_template_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimStatus {
    name: String,
    resource_claim_name: Option<String>,
}

impl PodLinks {
    /// What a pod leads to; nothing unless it is bound.
    ///
    /// # Errors
    /// It is no pod.
    pub fn read(json: &[u8]) -> Result<Option<PodLinks>, serde_json::Error> {
        let Pod { metadata, spec, status } = serde_json::from_slice(json)?;
        if spec.node_name.is_empty() {
            return Ok(None);
        }
        let mut links = PodLinks { node: spec.node_name.clone(), named: Vec::new() };
        if !metadata.annotations.contains_key(MIRROR) {
            links.of_spec(&metadata.name, spec, &status);
            links.named.sort_unstable();
            links.named.dedup();
        }
        Ok(Some(links))
    }

    fn of_spec(&mut self, pod: &str, spec: Spec, status: &Status) {
        self.name(Related::ServiceAccount, spec.service_account_name);
        for secret in spec.image_pull_secrets {
            self.name(Related::Secret, secret.name);
        }
        let containers = [spec.init_containers, spec.containers, spec.ephemeral_containers];
        for container in containers.into_iter().flatten() {
            container.env.into_iter().for_each(|variable| self.references(variable.value_from));
            container.env_from.into_iter().for_each(|source| self.references(source));
        }
        for volume in spec.volumes {
            self.volume(pod, volume);
        }
        // What a claim made from a template is called is in the pod's status.
        let made: BTreeMap<&str, &Option<String>> = status
            .resource_claim_statuses
            .iter()
            .rev()
            .map(|made| (made.name.as_str(), &made.resource_claim_name))
            .collect();
        for claim in spec.resource_claims {
            let named = match (claim.resource_claim_name, claim.resource_claim_template_name) {
                (Some(name), _) => Some(name),
                (None, Some(_)) => made.get(claim.name.as_str()).and_then(|name| (*name).clone()),
                (None, None) => None,
            };
            self.name(Related::ResourceClaim, named.unwrap_or_default());
        }
        let extended = status.extended_resource_claim_status.as_ref();
        let extended = extended.and_then(|status| status.resource_claim_name.clone());
        self.name(Related::ResourceClaim, extended.unwrap_or_default());
    }

    fn volume(&mut self, pod: &str, volume: Volume) {
        if volume.ephemeral.is_some() {
            self.name(Related::Claim, format!("{pod}-{}", volume.name));
        }
        self.name(Related::Claim, volume.persistent_volume_claim.claim_name);
        self.name(Related::ConfigMap, volume.config_map.name);
        self.name(Related::Secret, volume.secret.secret_name);
        self.name(Related::Secret, volume.azure_file.secret_name);
        self.name(Related::Secret, volume.csi.node_publish_secret_ref.name);
        let others = [
            volume.cephfs,
            volume.cinder,
            volume.flex_volume,
            volume.iscsi,
            volume.rbd,
            volume.scale_io,
            volume.storageos,
        ];
        for source in others {
            self.name(Related::Secret, source.secret_ref.name);
        }
        volume.projected.sources.into_iter().for_each(|source| self.references(source));
    }

    fn references(&mut self, of: References) {
        for secret in [of.secret_key_ref, of.secret_ref, of.secret] {
            self.name(Related::Secret, secret.name);
        }
        for map in [of.config_map_key_ref, of.config_map_ref, of.config_map] {
            self.name(Related::ConfigMap, map.name);
        }
    }

    fn name(&mut self, of: Related, name: String) {
        if !name.is_empty() {
            self.named.push((of, name));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn named(pod: &Value) -> Vec<String> {
        let links = PodLinks::read(pod.to_string().as_bytes()).expect("a pod").expect("a node");
        links.named.iter().map(|(of, name)| format!("{of:?} {name}")).collect()
    }

    #[test]
    fn a_pod_names_what_its_containers_volumes_and_claims_do() {
        let volume = |source: Value| {
            let mut volume = json!({ "name": "v" });
            volume
                .as_object_mut()
                .expect("an object")
                .extend(source.as_object().cloned().expect("an object"));
            volume
        };
        let volumes = json!([
            volume(json!({ "azureFile": { "secretName": "s1" } })),
            volume(json!({ "cephfs": { "secretRef": { "name": "s2" } } })),
            volume(json!({ "cinder": { "secretRef": { "name": "s3" } } })),
            volume(json!({ "csi": { "driver": "d", "nodePublishSecretRef": { "name": "s4" } } })),
            volume(json!({ "flexVolume": { "secretRef": { "name": "s5" } } })),
            volume(json!({ "iscsi": { "secretRef": { "name": "s6" } } })),
            volume(json!({ "rbd": { "secretRef": { "name": "s7" } } })),
            volume(json!({ "scaleIO": { "secretRef": { "name": "s8" } } })),
            volume(json!({ "storageos": { "secretRef": { "name": "s9" } } })),
            volume(json!({ "secret": { "secretName": "s0" } })),
            volume(
                json!({ "projected": { "sources": [{ "secret": { "name": "sp" } }, { "configMap": { "name": "mp" } }] } })
            ),
            volume(json!({ "configMap": { "name": "m1" } })),
            volume(json!({ "persistentVolumeClaim": { "claimName": "c1" } })),
            volume(json!({ "ephemeral": { "volumeClaimTemplate": {} } })),
            volume(json!({ "emptyDir": {} })),
        ]);
        let env = json!([
            { "name": "A", "valueFrom": { "secretKeyRef": { "name": "se", "key": "k" } } },
            { "name": "B", "valueFrom": { "configMapKeyRef": { "name": "me", "key": "k" } } },
            { "name": "C", "value": "v" },
        ]);
        let from = json!([{ "secretRef": { "name": "sf" } }, { "configMapRef": { "name": "mf" } }]);
        let pod = json!({
            "metadata": { "name": "p" },
            "spec": {
                "nodeName": "n", "serviceAccountName": "a", "imagePullSecrets": [{ "name": "si" }, {}],
                "containers": [{ "name": "c", "env": env }], "initContainers": [{ "name": "i", "envFrom": from }],
                "ephemeralContainers": [{ "name": "e", "env": env }], "volumes": volumes,
                "resourceClaims": [
                    { "name": "r1", "resourceClaimName": "rc" },
                    { "name": "r2", "resourceClaimTemplateName": "t" },
                    { "name": "r3", "resourceClaimTemplateName": "t" },
                ],
            },
            "status": {
                "resourceClaimStatuses": [{ "name": "r2", "resourceClaimName": "made" }],
                "extendedResourceClaimStatus": { "resourceClaimName": "extended" },
            },
        });
        let want = "Claim c1, Claim p-v, ConfigMap m1, ConfigMap me, ConfigMap mf, ConfigMap mp, ResourceClaim extended, \
                    ResourceClaim made, ResourceClaim rc, Secret s0, Secret s1, Secret s2, Secret s3, Secret s4, Secret s5, \
                    Secret s6, Secret s7, Secret s8, Secret s9, Secret se, Secret sf, Secret si, Secret sp, ServiceAccount a";
        assert_eq!(named(&pod).join(", "), want);
    }

    #[test]
    fn a_mirror_names_nothing_and_one_that_is_not_bound_leads_nowhere() {
        let annotations = json!({ "kubernetes.io/config.mirror": "x" });
        let spec = json!({ "nodeName": "n", "serviceAccountName": "a" });
        let mirror = json!({ "metadata": { "name": "p", "annotations": annotations }, "spec": spec });
        assert!(named(&mirror).is_empty());
        let unbound = json!({ "metadata": { "name": "p" }, "spec": { "serviceAccountName": "a" } });
        assert_eq!(PodLinks::read(unbound.to_string().as_bytes()).expect("a pod"), None);
        assert!(PodLinks::read(b"[").is_err());
    }
}
