//! What is served right now: resources as data, the kinds of their objects behind one trait, and where their
//! objects are.
//!
//! In: the built-in table, CRDs as they are stored, a backend. Out: [`Catalog`], a set of [`Served`] with a
//! [`Kind`] and a [`Store`] each. Never: answers a request; knows who writes what, when, and under which
//! rules: strategy and the verbs do.

mod built_in;
mod catalog;
mod converted;
pub mod counts;
pub mod crd;
mod custom;
mod ending;
pub mod errors;
pub mod groups;
pub mod histogram;
pub mod instrumented;
mod kind;
mod latencies;
pub mod limits;
mod opener;
mod request_context;
mod retire;
mod selectable;
mod served;
pub mod store;
pub mod table;
mod target;
mod versioned;

pub use built_in::{BuiltIn, Conversions, normalize_as};
pub use catalog::Catalog;
pub use converted::{
    Conversions as WantedConversions, Converted, Converting, Converts, View, WebhookConversion,
};
pub use custom::{Custom, served as custom_served};
pub use ending::Ending;
pub use kind::{Kind, Typed};
pub use latencies::{TimedPart, Timing};
pub use opener::{Opener, Shape};
pub use request_context::{AuditAnnotations, ObjectNoted, RequestContext, Turn, WebhookWaits};
pub use retire::retire;
pub use selectable::SelectableField;
pub use served::{Served, SubresourceInfo, compact};
pub use store::Store;
pub use target::Target;
pub use versioned::Versioned;
