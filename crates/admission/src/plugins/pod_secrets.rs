//! Which secrets a pod names, for ServiceAccount.
//!
//! In: a pod's spec. Out: whether it names any; which of them its service account does not own.
//!
//! Source: kubernetes v1.36.3 `pkg/api/pod/util.go` (`VisitPodSecretNames`), `plugin/pkg/admission/serviceaccount`.

use serde_json::Value;

use super::service_account::{Account, items};

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The places of a volume that name a secret.
const VOLUMES: [&str; 10] = [
    "/azureFile/secretName",
    "/cephfs/secretRef/name",
    "/cinder/secretRef/name",
    "/csi/nodePublishSecretRef/name",
    "/flexVolume/secretRef/name",
    "/iscsi/secretRef/name",
    "/rbd/secretRef/name",
    "/scaleIO/secretRef/name",
    "/secret/secretName",
    "/storageos/secretRef/name",
];

/// Whether anything in `spec` names a secret.
pub fn names_a_secret(spec: &Value) -> bool {
    let in_containers = CONTAINERS
        .iter()
        .flat_map(|list| items(&spec[*list]))
        .any(|container| of_env(container).next().is_some() || of_env_from(container).next().is_some());
    let in_volumes = items(&spec["volumes"]).any(|volume| {
        VOLUMES.iter().any(|place| volume.pointer(place).is_some())
            || items(&volume["projected"]["sources"]).any(|source| source["secret"].is_object())
    });
    in_containers || in_volumes || items(&spec["imagePullSecrets"]).next().is_some()
}

/// Refuses secrets that `account` does not own.
///
/// # Errors
/// The first of them, in kube-apiserver's words.
pub fn limit_secrets(account: &Account, spec: &Value) -> Result<(), String> {
    let (owner, mountable, for_pulls) = (account.name(), account.mountable(), account.for_pulls());
    for volume in items(&spec["volumes"]).filter(|volume| volume["secret"].is_object()) {
        let secret = text(&volume["secret"]["secretName"]);
        if !mountable.has(secret) {
            return Err(format!(
                "volume with secret.secretName=\"{secret}\" is not allowed because service account {owner} does not reference that secret"
            ));
        }
    }
    for (list, title) in [("initContainers", "init container"), ("containers", "container")] {
        limit_containers(account, &spec[list], title)?;
    }
    for (index, secret) in items(&spec["imagePullSecrets"]).map(|secret| text(&secret["name"])).enumerate() {
        if !for_pulls.has(secret) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service account {owner} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// Refuses secrets that `account` does not own in the variables of containers, which are called `title`.
///
/// # Errors
/// The first of them, in kube-apiserver's words.
pub fn limit_containers(account: &Account, containers: &Value, title: &str) -> Result<(), String> {
    let (owner, mountable) = (account.name(), account.mountable());
    for container in items(containers) {
        let name = text(&container["name"]);
        let foreign = |secret: &&str| !mountable.has(*secret);
        if let Some((variable, secret)) = of_env(container).find(|(_, secret)| foreign(secret)) {
            return Err(format!(
                "{title} {name} with envVar {variable} referencing secret.secretName=\"{secret}\" is not allowed because service account {owner} does not reference that secret"
            ));
        }
        if let Some(secret) = of_env_from(container).find(foreign) {
            return Err(format!(
                "{title} {name} with envFrom referencing secret.secretName=\"{secret}\" is not allowed because service account {owner} does not reference that secret"
            ));
        }
    }
    Ok(())
}

/// Variables and the secrets that their values come from.
fn of_env(container: &Value) -> impl Iterator<Item = (&str, &str)> {
    items(&container["env"]).filter_map(|variable| {
        let secret = variable.pointer("/valueFrom/secretKeyRef").filter(|one| one.is_object())?;
        Some((text(&variable["name"]), text(&secret["name"])))
    })
}

fn of_env_from(container: &Value) -> impl Iterator<Item = &str> {
    items(&container["envFrom"])
        .map(|source| &source["secretRef"])
        .filter(|secret| secret.is_object())
        .map(|secret| text(&secret["name"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_of_others_are_refused_one_by_one() {
        let account: Account = serde_json::from_value(json!({
            "metadata": { "name": "strict" }, "secrets": [{ "name": "own" }], "imagePullSecrets": [{ "name": "pull" }],
        }))
        .expect("an account");
        let env = |secret: &str| json!([{ "name": "E", "valueFrom": { "secretKeyRef": { "name": secret, "key": "k" } } }]);
        const NOT: &str = "is not allowed because service account strict does not reference that";
        for (spec, want) in [
            (
                json!({ "volumes": [{ "secret": { "secretName": "own" } }], "imagePullSecrets": [{ "name": "pull" }] }),
                None,
            ),
            (json!({ "containers": [{ "name": "c", "env": env("own") }] }), None),
            (
                json!({ "volumes": [{ "secret": { "secretName": "s" } }] }),
                Some(format!("volume with secret.secretName=\"s\" {NOT} secret")),
            ),
            (
                json!({ "containers": [{ "name": "c", "env": env("s") }] }),
                Some(format!("container c with envVar E referencing secret.secretName=\"s\" {NOT} secret")),
            ),
            (
                json!({ "initContainers": [{ "name": "c", "envFrom": [{ "secretRef": { "name": "s" } }] }] }),
                Some(format!(
                    "init container c with envFrom referencing secret.secretName=\"s\" {NOT} secret"
                )),
            ),
            (
                json!({ "imagePullSecrets": [{ "name": "s" }] }),
                Some(format!("imagePullSecrets[0].name=\"s\" {NOT} imagePullSecret")),
            ),
        ] {
            assert_eq!(limit_secrets(&account, &spec).err(), want, "{spec}");
            assert!(names_a_secret(&spec), "{spec}");
        }
        assert!(!names_a_secret(
            &json!({ "volumes": [{ "emptyDir": {} }], "containers": [{ "name": "c" }] })
        ));
    }
}
