//! The verbs of the API on every resource that is served: LIST and WATCH by `reads`, GET and the writes here.
//!
//! In: a target, options, a body. Out: an answer, a LIST or WATCH that is in order, or a `Status`. Never:
//! names an HTTP code, an engine or a file.

mod after;
mod api;
mod apply;
mod bootstrap;
mod caches;
mod config;
mod configuration;
mod consumed;
mod context;
mod conversion;
mod crd;
mod create;
mod delete;
mod eviction;
mod get;
mod identity;
mod in_force;
mod incoming;
mod informer;
mod kubernetes_service;
mod limits;
mod lookup;
mod neighbours;
mod new_object;
mod own_writes;
mod owners;
mod patch;
mod policy_source;
mod published;
mod quota_queue;
mod quotas;
mod registry;
mod review;
mod rights_source;
mod ruled;
mod service_address;
mod services;
mod subresources;
#[cfg(test)]
mod tests;
mod update;
mod write;

pub use config::{Config, ServiceRouting, ServicesConfig};
pub use forebay_admission::{
    Admission, DefaultTolerations, EventRates, KindServed, KindsElsewhere, LimitedResources, LostNodes,
    NodeSelectors, PluginSettings, SecurityConfiguration,
};
pub use identity::Identity;
pub use informer::{CatalogChanges, Informer, Notice, Objects};
pub use registry::Registry;

pub use forebay_service_claims::{AddressRange, PortRange};
pub use forebay_strategy::Privileged;
pub use forebay_watchcache::{Held, History};
