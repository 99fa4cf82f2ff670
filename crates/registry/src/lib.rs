//! The verbs of the API on every resource that is served.
//!
//! In: a target, options, a body. Out: an answer, a LIST or WATCH body, or a `Status`. Never: names an HTTP code, an
//! engine or a file.

mod after;
mod api;
mod bootstrap;
mod config;
mod consumed;
mod context;
mod crd;
mod create;
mod delete;
mod eviction;
mod frames;
mod get;
mod identity;
mod incoming;
mod informer;
mod kubernetes_service;
mod limits;
mod list;
mod lookup;
mod new_object;
mod patch;
mod plan;
mod present;
mod published;
mod read;
mod registry;
pub mod request;
mod review;
mod ruled;
mod services;
mod subresources;
#[cfg(test)]
mod tests;
mod update;
mod wall_time;
mod watch;
mod write;

pub use config::Config;
pub use forebay_admission::{Admission, ServiceAccountAdmission};
pub use frames::{
    AsStored, AtRest, Batch, EventForm, EventFormat, EventWriter, FORMATS, FrameMessage, FrameSink, JSON,
    PROTOBUF, WriteStatus,
};
pub use identity::Identity;
pub use incoming::Incoming;
pub use informer::{CatalogChanges, Informer, Notice, Objects};
pub use list::{ListBody, Sink};
pub use plan::{Begun, ListPlan, Planned, WatchPlan, Weight};
pub use present::{As, Encoding, IncludeObject, Presenter, Shown};
pub use registry::Registry;
pub use services::{AddressRange, PortRange, ServicesConfig};
pub use watch::{Now, Step, Wait, WatchBody, WatchSession};

pub use forebay_watchcache::{Held, History, Relief};
