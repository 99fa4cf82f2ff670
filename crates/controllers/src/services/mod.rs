//! What Services lead to: endpointslice-controller, endpoints-controller and
//! endpointslice-mirroring-controller.
//!
//! In: notices of services, pods, and of what the controllers wrote. Out: EndpointSlices, and Endpoints. What
//! is kept of a service is what it selects pods by, and when its pods became ready; of a pod nothing: what
//! has changed of one is told by its two states. Never: leads anybody anywhere.

mod endpoints;
mod events;
mod follow;
mod hints;
mod index;
mod mirror;
mod near;
mod ports;
mod reconcile;
mod slices;
mod subsets;
#[cfg(test)]
mod tests;
mod topology;
mod triggers;
mod view;

pub use endpoints::EndpointsController;
pub use mirror::MirrorController;
pub use slices::SliceController;
