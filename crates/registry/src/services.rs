//! Services among the verbs: a write of one is carried to its end, and what follows its delete.
//!
//! In: writes of Services, through the small hook in the verbs. Out: the same, with what `service-claims` has
//! filled in. Never: decides who has which address.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::{Revision, Status};
use forebay_catalog::{Served, Target, errors};
use forebay_object::Object;
use forebay_service_claims::{MakesAddresses, after_address, after_service};
use serde_json::Value;

use crate::context::Context;
use crate::new_object;
use crate::owners;

pub(crate) use forebay_service_claims::{WriteClaims, is_unanswered, take_part};

impl MakesAddresses for Context {
    fn address(&self, mut address: Value) -> Result<Bytes, Status> {
        let served = self.catalog().resource("networking.k8s.io", "v1", "ipaddresses").cloned();
        let served = served.ok_or_else(|| Status::internal("ipaddresses are not served"))?;
        let target = Target::of_server(served, None, None);
        new_object::fill_in(self, &target, &mut address);
        owners::by_server(self, &target.served, (owners::SERVER, ""), None, &mut address)?;
        target.served.encode(address)
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
pub(crate) async fn after_delete(context: &Context, served: &Served, object: &Object, revision: Revision) {
    match (served.group(), served.resource()) {
        ("", "services") => after_service(&context.claims, object, revision).await,
        ("networking.k8s.io", "ipaddresses") => after_address(&context.claims, object, context).await,
        _ => {}
    }
}

/// Has it looked at whether what is gone is to be made again: once all that follows its delete is done.
pub(crate) fn look_after_delete(context: &Context, served: &Served, object: &Object) {
    if is_ours(served, object) {
        context.kubernetes.look.notify_one();
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
