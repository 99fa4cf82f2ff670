//! The garbage collector: what nobody owns any more goes, and who is waited for goes last.
//!
//! ```text
//! informers of every resource ──► graph (who depends on whom) ──► queue of uids ──► work: get, delete, patch
//! what other servers keep ──────┘                                      └► lanes: the same, at other servers
//! ```
//!
//! In: what happens to every object but events, here and on other servers. Out: deletes and patches, each on
//! exactly the state that it was decided on. Keeps of each object with owners where it is and who owns it, of
//! some owners that they are there, and nothing of the others; all of it is read again at a restart. Never:
//! decides on the graph alone that an owner is gone: who keeps it says so, and a server that cannot be asked
//! has said nothing.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/garbagecollector`.

mod collector;
mod found;
mod graph;
mod kinds;
mod lanes;
mod others;
mod place;
mod work;

use std::sync::Arc;

use forebay_api::ObjectsElsewhere;
use forebay_rt::Random;

use crate::acting::ActingRegistry;

pub use kinds::Kinds;

/// Runs until it is dropped.
///
/// - `objects`: what other servers keep, if there may be any.
pub async fn run(registry: ActingRegistry, objects: Option<Arc<dyn ObjectsElsewhere>>, random: Arc<Random>) {
    collector::Collector::new(registry, objects, random).run().await;
}
