//! Where a webhook is found: by its URL, or by its service, at the address of that or at its endpoints.
//!
//! In: a call. Out: its answer. Never: asks a second address once one has seen the request.
//!
//! Source: apiserver v0.36.3 `pkg/util/proxy/proxy.go`.

use forebay_webhooks::{Answered, Calling, Destination, NoAnswer};

use crate::context::Context;
use crate::service_address::Found;

/// The answer to a call.
///
/// # Errors
/// That there is none.
pub(crate) async fn reached(context: &Context, calling: Calling) -> Result<Answered, NoAnswer> {
    let Destination::Service { namespace, name, port, .. } = calling.client.destination.clone() else {
        return context.config.webhooks.call(calling).await;
    };
    let found = Found::of(context, &namespace, &name, port).map_err(NoAnswer::Failed)?;
    let first = found.address(context).map_err(NoAnswer::Failed)?;
    let ask = Calling { address: Some(first.clone()), has_others: true, ..calling.clone() };
    let unreached = match context.config.webhooks.call(ask).await {
        Err(NoAnswer::Unreached(why)) => why,
        answered => return answered,
    };
    // Where nothing carries packets for addresses of services, their endpoints may be in reach.
    let mut endpoints = found.endpoints(context);
    endpoints.retain(|endpoint| *endpoint != first);
    for endpoint in endpoints {
        let next = Calling { address: Some(endpoint), has_others: true, ..calling.clone() };
        match context.config.webhooks.call(next).await {
            Err(NoAnswer::Unreached(_)) => {}
            answered => return answered,
        }
    }
    tracing::debug!(service = &*name, why = unreached, "neither a service nor its endpoints are in reach");
    context.config.webhooks.call(Calling { address: Some(first), ..calling }).await
}
