//! What volumes, attachments of them and slices lead to.
//!
//! In: their JSON. Out: the claim that a volume is for and the secrets that its node needs; the node that an
//! attachment or a slice is of.
//!
//! Source: kubernetes v1.36.3 `pkg/api/v1/persistentvolume/util.go`.

use serde::Deserialize;

/// See the module's doc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeLinks {
    /// Namespace and name.
    pub(crate) claim: (String, String),
    /// Namespace and name; in order, each once.
    pub(crate) secrets: Vec<(String, String)>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Volume {
    spec: VolumeSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    claim_ref: Option<Reference>,
    azure_file: Source,
    cephfs: Source,
    cinder: Source,
    csi: Source,
    flex_volume: Source,
    iscsi: Source,
    rbd: Source,
    #[serde(rename = "scaleIO")]
    scale_io: Source,
    storageos: Source,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reference {
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    secret_name: String,
    secret_namespace: String,
    secret_ref: Reference,
    node_publish_secret_ref: Reference,
    node_stage_secret_ref: Reference,
    node_expand_secret_ref: Reference,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OfNode {
    spec: OfNodeSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OfNodeSpec {
    node_name: String,
}

impl VolumeLinks {
    /// What a volume leads to; nothing unless it is for a claim.
    ///
    /// # Errors
    /// It is no volume.
    pub fn read(json: &[u8]) -> Result<Option<VolumeLinks>, serde_json::Error> {
        let Volume { spec } = serde_json::from_slice(json)?;
        let Some(claim) = spec.claim_ref else { return Ok(None) };
        // In the claim's namespace, unless it says another.
        let or_claims =
            |namespace: String| if namespace.is_empty() { claim.namespace.clone() } else { namespace };
        let mut secrets = vec![(or_claims(spec.azure_file.secret_namespace), spec.azure_file.secret_name)];
        for source in [spec.cephfs, spec.flex_volume, spec.iscsi, spec.rbd, spec.scale_io] {
            secrets.push((or_claims(source.secret_ref.namespace), source.secret_ref.name));
        }
        let elsewhere = [
            spec.cinder.secret_ref,
            spec.storageos.secret_ref,
            spec.csi.node_publish_secret_ref,
            spec.csi.node_stage_secret_ref,
            spec.csi.node_expand_secret_ref,
        ];
        secrets.extend(elsewhere.into_iter().map(|secret| (secret.namespace, secret.name)));
        secrets.retain(|(_, name)| !name.is_empty());
        secrets.sort_unstable();
        secrets.dedup();
        Ok(Some(VolumeLinks { claim: (claim.namespace, claim.name), secrets }))
    }
}

/// The node that a volume is attached to, or is to be.
///
/// # Errors
/// It is no VolumeAttachment.
pub fn node_of_attachment(json: &[u8]) -> Result<Option<String>, serde_json::Error> {
    node_name(json)
}

/// The node that a slice is of; none for one of several.
///
/// # Errors
/// It is no ResourceSlice.
pub fn node_of_slice(json: &[u8]) -> Result<Option<String>, serde_json::Error> {
    node_name(json)
}

fn node_name(json: &[u8]) -> Result<Option<String>, serde_json::Error> {
    let OfNode { spec } = serde_json::from_slice(json)?;
    Ok(Some(spec.node_name).filter(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_volume_names_the_secrets_that_its_node_needs() {
        let claim = json!({ "namespace": "n", "name": "c" });
        let secret = |namespace: &str, name: &str| json!({ "namespace": namespace, "name": name });
        for (source, want) in [
            (json!({ "azureFile": { "secretName": "s" } }), "n/s"),
            (json!({ "azureFile": { "secretName": "s", "secretNamespace": "o" } }), "o/s"),
            (json!({ "cephfs": { "secretRef": secret("", "s") } }), "n/s"),
            (json!({ "rbd": { "secretRef": secret("o", "s") } }), "o/s"),
            (json!({ "cinder": { "secretRef": secret("o", "s") } }), "o/s"),
            (
                json!({ "csi": {
                    "controllerPublishSecretRef": secret("o", "x"), "nodePublishSecretRef": secret("o", "p"),
                    "nodeStageSecretRef": secret("o", "s"), "nodeExpandSecretRef": secret("o", "e"),
                } }),
                "o/e o/p o/s",
            ),
            (json!({ "hostPath": { "path": "/" } }), ""),
        ] {
            let mut spec = json!({ "claimRef": claim });
            spec.as_object_mut().expect("an object").extend(source.as_object().cloned().expect("an object"));
            let volume = json!({ "spec": spec }).to_string();
            let links = VolumeLinks::read(volume.as_bytes()).expect("a volume").expect("a claim");
            assert_eq!(links.claim, ("n".to_owned(), "c".to_owned()));
            let told: Vec<String> = links.secrets.iter().map(|(of, name)| format!("{of}/{name}")).collect();
            assert_eq!(told.join(" "), want, "{source}");
        }
        assert_eq!(VolumeLinks::read(b"{\"spec\":{}}").expect("a volume"), None);
    }
}
