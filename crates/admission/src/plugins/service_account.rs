//! ServiceAccount: pods run as a service account: the namespace's `default` unless they say which, and it has
//! to be there.
//!
//! In: a new pod, or containers that are added to one. Out: the pod with its account, the volume with the
//! account's token, and the account's pull secrets. Mirrors of a node's own pods stay as they are, and reach
//! for nothing of the API.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/serviceaccount`.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_api::Eventual;
use forebay_apimachinery::{Seen, Status};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fill::push;
use super::pod_secrets::{limit_containers, limit_secrets, names_a_secret};
use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};
use forebay_strategy::generate_name;
use forebay_strategy::value::{objects, text};

const ACCOUNTS: ReadFrom = ("", "serviceaccounts");
const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
/// On an account whose pods may name no secrets but its own.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
const VOLUME: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour and a bit: who issues tokens knows those of pods by it.
const TOKEN_SECONDS: i64 = 3607;
/// Looks for the `default` account, which a controller is about to make; at most this many, between 100 and
/// 200 ms apart.
const ATTEMPTS: usize = 10;
const PAUSE_MIN_MS: u64 = 100;

pub struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        (write.creates() && write.is_of("", "pods")) || is_of_added(write)
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        match is_of_added(write) {
            true => Eventual::Now(Ok(())),
            false => Eventual::later(admit(write, object, tools)),
        }
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        match is_of_added(write) {
            true => Eventual::later(limit_added(write, object, tools)),
            false => Eventual::Now(Ok(())),
        }
    }
}

/// Whether containers are added to a pod.
fn is_of_added(write: &WriteAttributes<'_>) -> bool {
    write.updates() && write.is_of_part("", "pods", "ephemeralcontainers")
}

/// What is looked at in a service account.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Account {
    metadata: Metadata,
    secrets: Vec<Named>,
    image_pull_secrets: Vec<Named>,
    automount_service_account_token: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

impl Account {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Names of the secrets that its pods may mount.
    pub fn mountable(&self) -> Seen<&str> {
        self.secrets.iter().map(|own| own.name.as_str()).collect()
    }

    /// Names of the secrets that its pods may pull images with.
    pub fn for_pulls(&self) -> Seen<&str> {
        self.image_pull_secrets.iter().map(|own| own.name.as_str()).collect()
    }

    fn enforces(&self) -> bool {
        let value = self.metadata.annotations.get(ENFORCE).map_or("", String::as_str);
        matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
    }
}

/// Gives a new pod its service account and what comes with it.
///
/// # Errors
/// 403: there is no such account, or the pod names secrets that it may not.
async fn admit(write: &WriteAttributes<'_>, pod: &mut Value, tools: &Tools<'_>) -> Result<(), Status> {
    if pod["metadata"]["annotations"].get(MIRROR).is_some() {
        return check_mirror(pod).map_err(|why| write.forbidden(pod, &why));
    }
    if !pod["spec"].is_object() {
        pod["spec"] = Value::Object(Map::new());
    }
    let name = account_name(&pod["spec"]).unwrap_or(DEFAULT).to_string();
    let account = account_of(write, pod, tools, &name).await?;
    let spec = &mut pod["spec"];
    // The field has two names.
    spec["serviceAccount"] = Value::from(name.clone());
    spec["serviceAccountName"] = Value::from(name);
    let volume = || generate_name(VOLUME, |bound| tools.random.below(bound));
    grant(&account, spec, volume);
    if account.enforces() {
        limit_secrets(&account, &pod["spec"]).map_err(|why| write.forbidden(pod, &why))?;
    }
    Ok(())
}

/// Looks at the secrets of containers that are added to a pod.
///
/// # Errors
/// 403: the pod has no account, or they name secrets that they may not.
async fn limit_added(write: &WriteAttributes<'_>, pod: &Value, tools: &Tools<'_>) -> Result<(), Status> {
    let Some(name) = account_name(&pod["spec"]) else {
        let why = format!("no service account specified for pod {}/{}", write.of.namespace, write.of.name);
        return Err(write.forbidden(pod, &why));
    };
    let account = account_of(write, pod, tools, name).await?;
    if account.enforces() {
        let limited = limit_containers(&account, &pod["spec"]["ephemeralContainers"], "ephemeral container");
        limited.map_err(|why| write.forbidden(pod, &why))?;
    }
    Ok(())
}

async fn account_of(
    write: &WriteAttributes<'_>,
    pod: &Value,
    tools: &Tools<'_>,
    name: &str,
) -> Result<Account, Status> {
    let namespace = write.of.namespace;
    find_account(tools, namespace, name).await.map_err(|status| {
        let message = &status.message;
        write.forbidden(pod, &format!("error looking up service account {namespace}/{name}: {message}"))
    })
}

/// The account, from the cache or else from the store; `default` is waited for a while.
async fn find_account(tools: &Tools<'_>, namespace: &str, name: &str) -> Result<Account, Status> {
    let attempts = if name == DEFAULT { ATTEMPTS } else { 1 };
    let pause = Duration::from_millis(PAUSE_MIN_MS + tools.random.below(PAUSE_MIN_MS));
    for attempt in 0..attempts {
        if attempt > 0 {
            tools.clock.sleep(pause).await;
        }
        let found = match tools.lookup.cached(ACCOUNTS, namespace, name) {
            Some(found) => Some(found),
            None => tools.lookup.live(ACCOUNTS, namespace, name).wait().await?,
        };
        if let Some(found) = found {
            return serde_json::from_slice(&found.untyped_json()).map_err(Status::internal);
        }
    }
    Err(Status::not_found("", "serviceaccount", name))
}

/// The account that a pod names, under its name or the older one.
fn account_name(spec: &Value) -> Option<&str> {
    let named = |member: &str| spec[member].as_str().filter(|name| !name.is_empty());
    named("serviceAccountName").or_else(|| named("serviceAccount"))
}

fn check_mirror(pod: &Value) -> Result<(), String> {
    let spec = &pod["spec"];
    if account_name(spec).is_some() {
        return Err("a mirror pod may not reference service accounts".into());
    }
    if names_a_secret(spec) {
        return Err("a mirror pod may not reference secrets".into());
    }
    let sources = items(&spec["volumes"]).flat_map(|volume| items(&volume["projected"]["sources"]));
    if sources.into_iter().any(|source| source["serviceAccountToken"].is_object()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".into());
    }
    Ok(())
}

/// The elements of an array, be it there or not.
pub fn items(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

/// Adds what comes with `account`.
fn grant(account: &Account, spec: &mut Value, volume_name: impl FnOnce() -> String) {
    let mounts = spec["automountServiceAccountToken"].as_bool().or(account.automount_service_account_token);
    if mounts.unwrap_or(true) {
        mount_token(spec, volume_name);
    }
    if items(&spec["imagePullSecrets"]).next().is_none() && !account.image_pull_secrets.is_empty() {
        let secrets = account.image_pull_secrets.iter().map(|secret| json!({ "name": secret.name }));
        spec["imagePullSecrets"] = secrets.collect();
    }
}

/// Mounts the token in every container that has nothing in its place.
fn mount_token(spec: &mut Value, volume_name: impl FnOnce() -> String) {
    let named =
        |volume: &Value| volume["name"].as_str().filter(|name| name.starts_with(VOLUME)).map(str::to_string);
    let known = items(&spec["volumes"]).find_map(named);
    let is_known = known.is_some();
    let name = known.unwrap_or_else(volume_name);
    let mut is_used = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            if objects(container, "volumeMounts").any(|mount| text(mount, "mountPath") == MOUNT_PATH) {
                continue;
            }
            is_used = true;
            push(
                container,
                "volumeMounts",
                json!({ "name": name, "readOnly": true, "mountPath": MOUNT_PATH }),
            );
        }
    }
    if let Some(spec) = spec.as_object_mut().filter(|_| is_used && !is_known) {
        push(spec, "volumes", json!({ "name": name, "projected": token_volume() }));
    }
}

fn token_volume() -> Value {
    let namespace = json!({ "apiVersion": "v1", "fieldPath": "metadata.namespace" });
    json!({
        "defaultMode": 0o644,
        "sources": [
            { "serviceAccountToken": { "path": "token", "expirationSeconds": TOKEN_SECONDS } },
            { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": namespace }] } },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(account: Value, mut spec: Value) -> Value {
        let account: Account = serde_json::from_value(account).expect("an account");
        grant(&account, &mut spec, || "kube-api-access-fresh".into());
        spec
    }

    fn mount(name: &str) -> Value {
        json!({ "name": name, "readOnly": true, "mountPath": MOUNT_PATH })
    }

    #[test]
    fn every_container_mounts_the_token() {
        let own = json!({ "name": "e", "mountPath": MOUNT_PATH });
        let spec = json!({
            "initContainers": [{ "name": "i", "volumeMounts": [own] }],
            "containers": [{ "name": "c" }, { "name": "d", "volumeMounts": [{ "name": "x", "mountPath": "/x" }] }],
        });
        let spec = granted(json!({}), spec);
        assert_eq!(spec["initContainers"][0]["volumeMounts"], json!([own]));
        assert_eq!(spec["containers"][0]["volumeMounts"], json!([mount("kube-api-access-fresh")]));
        assert_eq!(spec["containers"][1]["volumeMounts"][1], mount("kube-api-access-fresh"));
        let volumes = items(&spec["volumes"]).collect::<Vec<_>>();
        assert_eq!((volumes.len(), &volumes[0]["name"]), (1, &"kube-api-access-fresh".into()));
        assert_eq!(volumes[0]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"], 3607);
        assert_eq!(spec.get("imagePullSecrets"), None);
    }

    #[test]
    fn a_volume_that_is_there_is_used() {
        let volumes = json!([{ "name": "kube-api-access-mine" }]);
        let spec = granted(json!({}), json!({ "volumes": volumes, "containers": [{ "name": "c" }] }));
        assert_eq!(spec["volumes"], volumes);
        assert_eq!(spec["containers"][0]["volumeMounts"], json!([mount("kube-api-access-mine")]));
    }

    #[test]
    fn a_pod_decides_before_its_account() {
        for (account, pod, want) in [
            (json!(null), json!(null), true),
            (json!(false), json!(null), false),
            (json!(false), json!(true), true),
            (json!(true), json!(false), false),
        ] {
            let spec = granted(
                json!({ "automountServiceAccountToken": account }),
                json!({ "automountServiceAccountToken": pod, "containers": [{ "name": "c" }] }),
            );
            assert_eq!(spec["volumes"].is_array(), want, "{account} {pod}");
        }
    }

    #[test]
    fn pull_secrets_are_the_accounts_unless_the_pod_has_some() {
        let account = json!({ "imagePullSecrets": [{ "name": "a" }, { "name": "b" }] });
        let spec = granted(account.clone(), json!({}));
        assert_eq!(spec["imagePullSecrets"], json!([{ "name": "a" }, { "name": "b" }]));
        let own = json!({ "imagePullSecrets": [{ "name": "own" }] });
        assert_eq!(granted(account, own.clone())["imagePullSecrets"], own["imagePullSecrets"]);
    }

    #[test]
    fn mirrors_reach_for_nothing() {
        for (spec, want) in [
            (json!({ "containers": [{ "name": "c" }] }), Ok(())),
            (json!({ "serviceAccount": "a" }), Err("a mirror pod may not reference service accounts")),
            (
                json!({ "volumes": [{ "secret": { "secretName": "s" } }] }),
                Err("a mirror pod may not reference secrets"),
            ),
            (
                json!({ "volumes": [{ "projected": { "sources": [{ "serviceAccountToken": { "path": "t" } }] } }] }),
                Err("a mirror pod may not use ServiceAccountToken volume projections"),
            ),
        ] {
            assert_eq!(check_mirror(&json!({ "spec": spec })), want.map_err(str::to_string), "{spec}");
        }
    }
}
