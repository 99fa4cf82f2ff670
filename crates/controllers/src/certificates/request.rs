//! A CertificateSigningRequest, as far as the controllers go by it: read, and written with what they have to
//! say of it.
//!
//! In: notices, names. Out: requests; conditions and certificates in the store. Never: decides anything.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_catalog::Target;
use forebay_pki::signing::CertificateRequest;
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::acting::ActingRegistry;
use crate::objects::{built_in, collection, find, named, update};
use crate::queue::{Queue, Verdict};

pub(super) const GROUP: &str = "certificates.k8s.io";
pub(super) const REQUESTS: &str = "certificatesigningrequests";
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(super) const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
pub(super) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(super) const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// What of a request the controllers go by.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Request {
    pub(super) metadata: Metadata,
    pub(super) spec: Spec,
    pub(super) status: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) creation_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub(super) request: String,
    pub(super) signer_name: String,
    pub(super) expiration_seconds: Option<i32>,
    pub(super) usages: Option<Vec<String>>,
    pub(super) username: String,
    pub(super) uid: String,
    pub(super) groups: Option<Vec<String>>,
    pub(super) extra: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct State {
    pub(super) conditions: Option<Vec<Condition>>,
    pub(super) certificate: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    pub(super) r#type: String,
    pub(super) status: String,
    pub(super) last_update_time: Option<String>,
}

impl Request {
    /// # Errors
    /// It is not what is stored.
    pub(super) fn of(value: &Value) -> Result<Request, Status> {
        Request::deserialize(value).map_err(Status::internal)
    }

    /// What is asked for.
    ///
    /// # Errors
    /// It is no request.
    pub(super) fn carried(&self) -> Result<CertificateRequest, String> {
        let pem = STANDARD.decode(&self.spec.request).map_err(|why| why.to_string())?;
        CertificateRequest::parse(&pem)
    }

    pub(super) fn usages(&self) -> impl Iterator<Item = &str> {
        self.spec.usages.iter().flatten().map(String::as_str)
    }

    pub(super) fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.status.conditions.iter().flatten()
    }

    /// Whether there is such a condition, whatever it says.
    pub(super) fn has(&self, kind: &str) -> bool {
        self.conditions().any(|condition| condition.r#type == kind)
    }

    pub(super) fn is_issued(&self) -> bool {
        self.status.certificate.as_ref().is_some_and(|certificate| !certificate.is_empty())
    }
}

/// The request called `name` as a tree, and where it is.
pub(super) async fn read(registry: &ActingRegistry, name: &str) -> Result<Option<(Target, Value)>, Status> {
    let requests = built_in(registry, GROUP, "v1", REQUESTS)?;
    let target = named(&requests, "", name);
    let Some(found) = find(registry, &target).await? else { return Ok(None) };
    let value = requests.to_value(&found)?;
    Ok(Some((target, value)))
}

/// Adds a condition to what was read, and writes it by `subresource`.
pub(super) async fn add_condition(
    registry: &ActingRegistry,
    (target, mut request): (Target, Value),
    subresource: &str,
    condition: Value,
) -> Result<(), Status> {
    let status = &mut request["status"];
    if !status.is_object() {
        *status = json!({});
    }
    match &mut status["conditions"] {
        Value::Array(conditions) => conditions.push(condition),
        none => *none = json!([condition]),
    }
    write(registry, target, request, subresource).await
}

pub(super) async fn write(
    registry: &ActingRegistry,
    target: Target,
    request: Value,
    subresource: &str,
) -> Result<(), Status> {
    update(registry, &Target { subresource: Some(subresource.to_owned()), ..target }, request).await
}

pub(super) fn informers(registry: &ActingRegistry) -> Result<Vec<Informer>, Status> {
    let requests = built_in(registry, GROUP, "v1", REQUESTS)?;
    Ok(vec![registry.informer(&collection(&requests, None), &ListOptions::default())?])
}

pub(super) fn observe(notice: &Notice, _now: Instant, queue: &mut Queue<String>) {
    if let Notice::Put(request) = notice {
        queue.add(request.name().to_string());
    }
}

pub(super) fn verdict(done: Result<(), String>) -> Verdict {
    done.map_or_else(Verdict::Retry, |()| Verdict::Done)
}
