//! Requests for certificates: approved where a node asks for its own, signed once they are approved, and
//! deleted when their time is over.
//!
//! In: notices of CertificateSigningRequests. Out: conditions, certificates, deletes. Never: keeps a request;
//! approves one for whom the authorizer does not say so.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/certificates`.

mod approve;
mod clean;
mod recognize;
mod sign;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_catalog::Target;
use forebay_pki::signing::{CertificateRequest, SigningAuthority};
use forebay_registry::{Informer, Notice};
use forebay_rt::{Duration, Instant};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::acting::ActingRegistry;
use crate::objects::{built_in, collection, find, named, update};
use crate::queue::{Queue, Verdict};

pub use approve::CertificateApprover;
pub use clean::CertificateCleaner;
pub use sign::CertificateSigner;

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// Who signs, and for how long at most.
#[derive(Clone, Debug)]
pub struct Signing {
    pub authority: Arc<SigningAuthority>,
    pub duration: Duration,
}

/// What of a request the controllers go by.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Request {
    metadata: Metadata,
    spec: Spec,
    status: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    uid: String,
    resource_version: String,
    creation_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    request: String,
    signer_name: String,
    expiration_seconds: Option<i32>,
    usages: Option<Vec<String>>,
    username: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct State {
    conditions: Option<Vec<Condition>>,
    certificate: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    r#type: String,
    status: String,
    last_update_time: Option<String>,
}

impl Request {
    /// # Errors
    /// It is not what is stored.
    fn of(value: &Value) -> Result<Request, Status> {
        Request::deserialize(value).map_err(Status::internal)
    }

    /// What is asked for.
    ///
    /// # Errors
    /// It is no request.
    fn carried(&self) -> Result<CertificateRequest, String> {
        let pem = STANDARD.decode(&self.spec.request).map_err(|why| why.to_string())?;
        CertificateRequest::parse(&pem)
    }

    fn usages(&self) -> impl Iterator<Item = &str> {
        self.spec.usages.iter().flatten().map(String::as_str)
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.status.conditions.iter().flatten()
    }

    /// Whether there is such a condition, whatever it says.
    fn has(&self, kind: &str) -> bool {
        self.conditions().any(|condition| condition.r#type == kind)
    }

    fn is_issued(&self) -> bool {
        self.status.certificate.as_ref().is_some_and(|certificate| !certificate.is_empty())
    }
}

/// The request called `name` as a tree, and where it is.
async fn read(registry: &ActingRegistry, name: &str) -> Result<Option<(Target, Value)>, Status> {
    let requests = built_in(registry, GROUP, "v1", REQUESTS)?;
    let target = named(&requests, "", name);
    let Some(found) = find(registry, &target).await? else { return Ok(None) };
    let value = requests.to_value(&found)?;
    Ok(Some((target, value)))
}

/// Adds a condition to what was read, and writes it by `subresource`.
async fn add_condition(
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

async fn write(
    registry: &ActingRegistry,
    target: Target,
    request: Value,
    subresource: &str,
) -> Result<(), Status> {
    update(registry, &Target { subresource: Some(subresource.to_owned()), ..target }, request).await
}

fn informers(registry: &ActingRegistry) -> Result<Vec<Informer>, Status> {
    let requests = built_in(registry, GROUP, "v1", REQUESTS)?;
    Ok(vec![registry.informer(&collection(&requests, None), &ListOptions::default())?])
}

fn observe(notice: &Notice, _now: Instant, queue: &mut Queue<String>) {
    if let Notice::Put(request) = notice {
        queue.add(request.name().to_string());
    }
}

fn verdict(done: Result<(), String>) -> Verdict {
    done.map_or_else(Verdict::Retry, |()| Verdict::Done)
}
