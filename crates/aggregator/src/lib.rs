//! APIServices: who serves which version beside this server, whether they are there, and what they say of
//! what they serve.
//!
//! In: APIServices, services and their endpoints, as this server has them; what the servers behind them
//! answer. Out: routes and extensions, published; conditions; what is counted. One task follows them all, and
//! looks at each again and again. What they keep in a namespace that ends is deleted there, and what they
//! keep is followed for who follows owners. Never: carries a client's request, or trusts what is answered
//! beyond its limits.

mod aggregator;
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

use forebay_registry::Registry;
use forebay_rt::Tasks;

pub use aggregator::{Aggregator, AggregatorConfig};
pub use content::ContentElsewhere;
pub use objects::ObjectsOfOthers;
pub use published::{PublishedAuthentication, keep_published};

/// Follows the APIServices of `registry` until `tasks` end.
pub fn start(config: AggregatorConfig, registry: &Registry, tasks: &Tasks) -> Aggregator {
    let aggregator = Aggregator::default();
    tasks.spawn("aggregator", follow::run(config, registry.clone(), aggregator.clone()));
    aggregator
}
