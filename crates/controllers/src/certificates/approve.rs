//! certificatesigningrequest-approving-controller: a kubelet's request for the certificate that it shows to
//! API servers is approved if the authorizer says that who asks may have it.
//!
//! In: requests. Out: the condition `Approved`. Never: denies.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/certificates/approver`.

use forebay_apimachinery::{About, Attributes, Caller, ResourceAttributes, Status, Verb};
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use serde_json::json;

use super::recognize;
use super::request::{self, GROUP, KUBELET_CLIENT, REQUESTS, Request, add_condition, read, verdict};
use crate::acting::ActingRegistry;
use crate::queue::{Queue, Verdict};
use crate::run::Named;

/// The controller.
pub struct CertificateApprover(pub ActingRegistry);

impl Named for CertificateApprover {
    const NAME: &'static str = crate::Controller::CertificateApproving.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        request::informers(&self.0)
    }

    fn observe(&self, _: usize, notice: &Notice, now: Instant, queue: &mut Queue<String>) {
        request::observe(notice, now, queue);
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.0.clone();
        async move { verdict(sync(&registry, &name).await) }
    }
}

async fn sync(registry: &ActingRegistry, name: &str) -> Result<(), String> {
    let Some((target, value)) = read(registry, name).await.map_err(|status| status.message)? else {
        return Ok(());
    };
    let request = Request::of(&value).map_err(|status| status.message)?;
    if request.is_issued() || request.has("Approved") || request.has("Denied") {
        return Ok(());
    }
    let carried = request.carried().map_err(|why| format!("unable to parse csr {name:?}: {why}"))?;
    if request.spec.signer_name != KUBELET_CLIENT
        || recognize::kubelet_client(&carried, request.usages()).is_err()
    {
        return Ok(());
    }
    let is_own = request.spec.username == carried.common_name;
    let tried = [("selfnodeclient", "self kubelet", is_own), ("nodeclient", "kubelet", true)];
    for (subresource, whose, _) in tried.iter().filter(|(.., is_tried)| *is_tried) {
        if !may(registry, &request, subresource).await {
            continue;
        }
        let message = format!("Auto approving {whose} client certificate after SubjectAccessReview.");
        let condition =
            json!({ "type": "Approved", "status": "True", "reason": "AutoApproved", "message": message });
        let done = add_condition(registry, (target, value), "approval", condition).await;
        return done.map_err(|status| format!("error updating approval for csr: {}", status.message));
    }
    let tried: Vec<&str> = tried.iter().filter(|(.., is_tried)| *is_tried).map(|(name, ..)| *name).collect();
    Err(format!(
        "recognized csr {name:?} as [{}] but subject access review was not approved",
        tried.join(" ")
    ))
}

/// Whether who asked may have such a certificate.
async fn may(registry: &ActingRegistry, request: &Request, subresource: &str) -> bool {
    let spec = &request.spec;
    let caller = Caller {
        name: spec.username.clone(),
        uid: spec.uid.clone(),
        groups: spec.groups.clone().unwrap_or_default(),
        extra: spec.extra.clone().unwrap_or_default(),
    };
    let of = ResourceAttributes {
        group: GROUP,
        version: "*",
        resource: REQUESTS,
        subresource,
        ..ResourceAttributes::default()
    };
    let asked = Attributes { caller: &caller, verb: &Verb::Create, about: About::Resource(of) };
    registry.authorizer().authorize(&asked).wait().await.is_allowed()
}
