//! APIServices: who serves which version beside this server, whether they are there, and what they say of
//! what they serve.
//!
//! In: APIServices, services and their endpoints, as this server has them; what the servers behind them
//! answer. Out: routes and extensions, published; conditions; what is counted. One task follows them all, and
//! looks at each again and again. What they keep in a namespace that ends is deleted there, and what they keep
//! is followed for who follows owners. Never: carries a client's request, or trusts what is answered beyond its
//! limits.

mod asking;
mod changes;
mod check;
mod condition;
mod content;
mod documents;
mod follow;
mod followed;
mod heard;
mod item;
mod known;
pub mod limits;
mod objects;
mod published;
mod registered;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_documents::discovery::Extensions;
use forebay_documents::metrics::Availability;
use forebay_proxy::{ClientIdentity, Routes, Spoken};
use forebay_registry::Registry;
use forebay_rt::Tasks;

use changes::Changes;

pub use content::ContentElsewhere;
pub use objects::ObjectsOfOthers;
pub use published::{PublishedAuthentication, keep_published};

/// What following them takes.
pub struct AggregatorConfig {
    /// Who this server is to the others.
    pub identity: Option<ClientIdentity>,
    /// What they are told by besides the usual headers.
    pub spoken: Spoken,
}

/// What is known of the other servers, now and from now on. Cheap to clone.
#[derive(Clone, Default)]
pub struct Aggregator {
    pub routes: Arc<Routes>,
    pub extensions: Arc<Extensions>,
    pub availability: Arc<Availability>,
    is_told: Arc<AtomicBool>,
    // Rung when routes or extensions are others, and when they are told for the first time.
    changes: Arc<Changes>,
}

impl Aggregator {
    /// Whether every APIService that was there at the beginning is told of.
    fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Acquire)
    }
}

/// Follows the APIServices of `registry` until `tasks` end.
pub fn start(config: AggregatorConfig, registry: &Registry, tasks: &Tasks) -> Aggregator {
    let aggregator = Aggregator::default();
    tasks.spawn("aggregator", follow::run(config, registry.clone(), aggregator.clone()));
    aggregator
}
