//! The garbage collector: what nobody owns any more goes, and who is waited for goes last.
//!
//! ```text
//! informers of every resource ──► graph (who depends on whom) ──► queue of uids ──► work: get, delete, patch
//! ```
//!
//! In: what happens to every object but events. Out: deletes and patches, each on exactly the state that it
//! was decided on. Keeps of each object with owners where it is and who owns it, of some owners that they are
//! there, and nothing of the others; all of it is read again at a restart. Never: decides on the graph alone
//! that an owner is gone.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/garbagecollector`.

mod collector;
mod found;
mod graph;
mod kinds;
mod work;

use std::sync::Arc;

use forebay_rt::Random;

use crate::acting::ActingRegistry;

pub use kinds::Kinds;

/// Runs until it is dropped.
pub async fn run(registry: ActingRegistry, random: Arc<Random>) {
    collector::Collector::new(registry, random).run().await;
}
