//! What a LIST and a WATCH send: a plan from the options, and a body over the cache's snapshots, made piece
//! by piece.
//!
//! ```text
//! options ──► plan ──► run on a lease ──► body: list, or watch session ──► presenter, frames ──► bytes
//! ```
//!
//! In: a [`Target`](forebay_catalog::Target) and its options. Out: [`Planned`] with its weight, then a
//! [`ListBody`] or a [`WatchBody`]; objects as they are shown, JSON, protobuf and Tables ([`Presenter`]).
//! Whoever holds caches reads by this: the registry of this server, or what stands for another one. Never:
//! writes; knows HTTP, or who asks.

mod frames;
mod gathering;
mod limits;
mod list;
mod listed;
mod page;
mod page_start;
mod plan;
mod present;
mod read_price;
mod shown_store;
mod sought;
#[cfg(test)]
mod tests;
mod wall_time;
mod watch;
mod weight;

pub use forebay_watchcache::Estimate;
pub use frames::{
    AsStored, AtRest, Batch, EventForm, EventFormat, EventWriter, FORMATS, FrameMessage, FrameSink, JSON,
    PROTOBUF, WriteStatus, status_without_code,
};
pub use list::{ListBody, SeenObjects, Sink};
pub use page::{Page, page};
pub use plan::{
    Begun, DeletionPlan, Freshness, ListPlan, Planned, Planner, WatchPlan, deletion, freshness, interest,
};
pub use present::{As, Encoding, IncludeObject, ListMeta, Presenter, Shown};
pub use read_price::{Making, Rendering, cpu, sent_bytes};
pub use shown_store::ShownStore;
pub use sought::Sought;
pub use wall_time::{rfc3339, timestamp};
pub use watch::{Now, Step, Wait, WatchBody, WatchSession};
pub use weight::{FoundBy, Weight};
