//! CertificateApproval and CertificateSigning: who approves a request for a certificate, or signs one, may do
//! so for its signer: `approve` or `sign` on the resource `signers` of that name, or of `domain/*`.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/certificates/{approval,signing}`, `pkg/certauthorization`.

use forebay_api::Eventual;
use forebay_apimachinery::{About, Attributes, Caller, ResourceAttributes, Status, Verb};
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";

pub struct CertificateApproval;

pub struct CertificateSigning;

impl Plugin for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.updates() && write.is_of_part(GROUP, REQUESTS, "approval")
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        Eventual::later(may(write, object, tools, "approve"))
    }
}

impl Plugin for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.updates() && write.is_of_part(GROUP, REQUESTS, "status")
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let is_same = |old: &Value| {
            ["certificate", "conditions"].iter().all(|member| {
                let [old, new] = [old, object].map(|request| &request["status"][*member]);
                old == new || (is_nothing(old) && is_nothing(new))
            })
        };
        match write.old.is_some_and(is_same) {
            true => Eventual::Now(Ok(())),
            false => Eventual::later(may(write, object, tools, "sign")),
        }
    }
}

/// An empty list and none are the same.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Refuses who may not do `verb` for the signer of what is stored. The server itself may.
async fn may(
    write: &WriteAttributes<'_>,
    object: &Value,
    tools: &Tools<'_>,
    verb: &str,
) -> Result<(), Status> {
    let (Some(caller), Some(old)) = (write.caller, write.old) else { return Ok(()) };
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer, &format!("{domain}/*")] {
        if is_allowed(caller, tools, verb, name).await {
            return Ok(());
        }
    }
    Err(write.forbidden(object, &format!("user not permitted to {verb} requests with signerName {signer:?}")))
}

async fn is_allowed(caller: &Caller, tools: &Tools<'_>, verb: &str, name: &str) -> bool {
    let of = ResourceAttributes {
        group: GROUP,
        version: "*",
        resource: "signers",
        name,
        ..ResourceAttributes::default()
    };
    let verb = Verb::named(verb);
    let asked = Attributes { caller, verb: &verb, about: About::Resource(of) };
    tools.authorizer.authorize(&asked).wait().await.is_allowed()
}
