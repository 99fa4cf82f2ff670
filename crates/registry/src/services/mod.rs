//! What Services are given, cluster IPs and node ports, so that no two ever have the same; and the
//! `kubernetes` Service.
//!
//! In: writes of Services, through the small hook in the verbs. Out: Services with what they take filled in.
//!
//! The truth about an address or a port is its *claim*: one key in the store, created only where none is,
//! that names its Service. Of an address it is the IPAddress object of that name, of a node port a key that
//! no resource has (`docs/formats/node-ports.md`). Whoever creates the claim has the item, whichever server
//! that is. Claims are made before the Service is stored, and given back after it has let go, so a crash
//! between, or a write that the store does not answer, leaves at worst a claim too many, which `repair` gives
//! back. What is cached of claims only says where to look for a free one.
//!
//! State: the claims that writes of this server are in the middle of, behind one short lock; whether claims
//! have been repaired since the start. Never: judges a Service, which `strategy` does.
//!
//! ADR-0016. Source: kubernetes v1.36.3 `registry/core/service/storage`, `ipallocator`, `portallocator`.

pub(crate) mod cidrs;
pub(crate) mod claim;
mod claims;
mod config;
mod range;
pub(crate) mod repair;
mod state;
pub(crate) mod unreadable;

use std::sync::Arc;

use forebay_apimachinery::{Reason, Revision, Status};
use forebay_catalog::Served;
use forebay_catalog::errors;
use forebay_catalog::store::Mode;
use forebay_object::Object;

use crate::context::Context;
use forebay_catalog::Target;

pub(crate) use claims::Claims;
pub use config::ServicesConfig;
pub use range::{AddressRange, PortRange};
pub(crate) use state::Services;

/// Whether objects of `served` take things that only one may have. A write of one is carried to its end even
/// if nobody waits for it any more: half done, it would look like a leak to `repair` while it can still
/// commit.
pub(crate) fn take_part(served: &Served) -> bool {
    served.is("", "services")
}

/// Whether the store did not say what became of a write that failed so.
pub(crate) fn is_unanswered(failure: &Status) -> bool {
    failure.reason == Reason::Timeout
}

/// What a write of `target` takes.
pub(crate) fn claims(context: &Arc<Context>, target: &Target, mode: Mode) -> Claims {
    if take_part(&target.served) && target.subresource.is_none() {
        Claims::open(context, target, mode)
    } else {
        Claims::none()
    }
}

/// Runs `work` to its end, also when the caller stops waiting.
pub(crate) async fn to_the_end<T: Send + 'static>(
    context: &Arc<Context>,
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let (tell, told) = tokio::sync::oneshot::channel();
    context.tasks.spawn_graceful("write of a service", async move {
        // Whoever asked may be gone.
        let _gone = tell.send(work.await);
    });
    told.await.unwrap_or_else(|_ended| Err(errors::shutting_down()))
}

/// What follows the delete of `object` at `revision`, for Services and for what belongs to them.
pub(crate) async fn after_delete(
    context: &Arc<Context>,
    served: &Served,
    object: &Object,
    revision: Revision,
) {
    match (served.group(), served.resource()) {
        ("", "services") => after_service(context, object, revision).await,
        ("networking.k8s.io", "ipaddresses") => after_address(context, object).await,
        _ => {}
    }
}

/// Has it looked at whether what is gone is to be made again: once all that follows its delete is done.
pub(crate) fn look_after_delete(context: &Context, served: &Served, object: &Object) {
    if is_ours(served, object) {
        context.services.look.notify_one();
    }
}

/// Claims an address again whose claim was deleted by hand, if its Service has it still.
async fn after_address(context: &Arc<Context>, object: &Object) {
    let Some(item) = claim::item_of(object.name(), false) else { return };
    let claimed = async {
        match claim::read_claim(item, object)?.owner {
            Some(owner) => repair::claim_missing(context, item, &owner).await,
            None => Ok(false),
        }
    };
    if let Err(status) = claimed.await {
        tracing::warn!(item = object.name(), why = status.message, "not claimed again yet");
    }
}

/// Gives back what a Service had that was deleted at `revision`.
async fn after_service(context: &Arc<Context>, object: &Object, revision: Revision) {
    let owner = claim::Owner::of(object);
    let holdings = match claim::holdings_of(object) {
        Ok(holdings) => holdings,
        Err(status) => return tracing::warn!(why = status.message, "a deleted Service cannot be read"),
    };
    for item in holdings {
        claim::give_back(context, item, &owner, revision).await;
    }
}

/// What the Service is called by which what runs in a cluster finds its servers.
pub(crate) const NAME: &str = "kubernetes";
pub(crate) const NAMESPACE: &str = "default";

/// Whether `object` is one that is made again when it is gone.
fn is_ours(served: &Served, object: &Object) -> bool {
    let kinds = [("", "services"), ("", "endpoints"), ("discovery.k8s.io", "endpointslices")];
    let default_cidr = served.is("networking.k8s.io", "servicecidrs");
    // Few: three kinds.
    let ours = kinds.iter().any(|(group, resource)| served.is(group, resource));
    object.name() == NAME && (default_cidr || ours && object.namespace() == NAMESPACE)
}
