//! certificatesigningrequest-signing-controller: what is approved is signed, by the authority in the
//! directory of certificates, for the four signers that Kubernetes has for it.
//!
//! In: requests. Out: certificates in their status, or the condition `Failed` for what a signer does not
//! sign. Never: signs what is not approved, or for another signer.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/certificates/signer`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::Status;
use forebay_pki::signing::{CertificateRequest, SigningAuthority};
use forebay_registry::{Informer, Notice};
use forebay_rt::{Duration, Instant};
use jiff::SignedDuration;
use serde_json::json;

use super::recognize;
use super::request::{
    self, CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY, Request, add_condition, read, verdict, write,
};
use crate::acting::ActingRegistry;
use crate::queue::{Queue, Verdict};
use crate::run::Named;

/// Who signs, and for how long at most.
#[derive(Clone, Debug)]
pub struct Signing {
    pub authority: Arc<SigningAuthority>,
    pub duration: Duration,
}

/// The controller.
pub struct CertificateSigner(pub ActingRegistry, pub Signing);

impl Named for CertificateSigner {
    const NAME: &'static str = crate::Controller::CertificateSigning.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        request::informers(&self.0)
    }

    fn observe(&self, _: usize, notice: &Notice, now: Instant, queue: &mut Queue<String>) {
        request::observe(notice, now, queue);
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let (registry, signing) = (self.0.clone(), self.1.clone());
        async move { verdict(sync(&registry, &signing, &name).await) }
    }
}

async fn sync(registry: &ActingRegistry, signing: &Signing, name: &str) -> Result<(), String> {
    let Some((target, mut value)) = read(registry, name).await.map_err(|status| status.message)? else {
        return Ok(());
    };
    let request = Request::of(&value).map_err(|status| status.message)?;
    let has_failed =
        request.conditions().any(|one| one.r#type == "Failed" && matches!(&*one.status, "" | "True"));
    let is_approved = request.has("Approved") && !request.has("Denied");
    // Few: four signers.
    let is_ours = [KUBELET_SERVING, KUBELET_CLIENT, CLIENT, LEGACY].contains(&&*request.spec.signer_name);
    if request.is_issued() || !is_approved || has_failed || !is_ours {
        return Ok(());
    }
    let carried = request.carried().map_err(|why| format!("unable to parse csr {name:?}: {why}"))?;
    let now = registry.timestamp();
    if let Err(why) = fits(&request, &carried) {
        let condition = json!({
            "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
            "lastUpdateTime": registry.now_rfc3339(),
        });
        let done = add_condition(registry, (target, value), "status", condition).await;
        return done.map_err(|status| format!("error adding failure condition for csr: {}", status.message));
    }
    let asked = request.spec.expiration_seconds.map(|seconds| SignedDuration::from_secs(seconds.into()));
    let longest = SignedDuration::try_from(signing.duration).unwrap_or(SignedDuration::MAX);
    let signed = signing.authority.sign(&carried, request.usages(), (asked, longest), now);
    let pem = signed.map_err(|why| format!("error auto signing csr: {why}"))?;
    if !value["status"].is_object() {
        value["status"] = json!({});
    }
    value["status"]["certificate"] = json!(STANDARD.encode(pem));
    let done = write(registry, target, value, "status").await;
    done.map_err(|status| format!("error updating signature for csr: {}", status.message))
}

/// Whether the request is what its signer signs.
fn fits(request: &Request, carried: &CertificateRequest) -> Result<(), String> {
    match &*request.spec.signer_name {
        KUBELET_SERVING => recognize::kubelet_serving(carried, request.usages()),
        KUBELET_CLIENT => recognize::kubelet_client(carried, request.usages()),
        CLIENT => recognize::client(request.usages()),
        // For whom it is was never said.
        _ => Ok(()),
    }
}
