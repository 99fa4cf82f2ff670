//! The watch cache of one resource: its state as an immutable snapshot, and a bounded window of its history.
//!
//! In: a [`Feed`](forebay_backend::Feed) of changes. Out: published [`Snapshot`]s for LIST and GET, and
//! [`Watcher`]s, each a cursor over the window. Data flows one way:
//!
//! ```text
//! backend ──► feed ──► ingest ──► Arc<Snapshot>  ──► LIST, GET, initial events
//!                            └──► log of events  ──► watchers
//! ```
//!
//! Never: knows HTTP, decodes an object into a tree, waits for a reader.

mod cacher;
mod check;
mod commands;
mod compare;
mod counters;
mod early_readers;
mod entries;
mod error;
mod estimate;
mod event;
mod follow;
mod ingest;
mod interest;
mod lanes;
pub mod limits;
mod look;
mod messages;
mod past;
mod published;
mod recent;
mod relief;
mod resource;
mod room;
mod seal;
mod snapshot;
mod source;
mod tree;
mod unreadable;
mod watcher;

pub use cacher::Cacher;
pub use counters::Counters;
pub use early_readers::EarlyReaders;
pub use error::ReadError;
pub use estimate::Estimate;
pub use event::{Event, EventKind};
pub use follow::{Changed, Followed, Follower};
pub use forebay_revlog::Position;
pub use interest::{FieldSource, FieldTerm, Interest, Reach};
pub use past::ExactPage;
pub use published::States;
pub use relief::{Relief, window_cap};
pub use resource::{History, Resource};
pub use room::Room;
pub use snapshot::{Held, Snapshot};
pub use watcher::{Budget, WatchStep, Watcher};

#[cfg(test)]
mod back_tests;
#[cfg(test)]
mod early_tests;
#[cfg(test)]
mod estimate_tests;
#[cfg(test)]
mod follow_tests;
#[cfg(test)]
mod lag_tests;
#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod let_go_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod past_tests;
#[cfg(test)]
mod room_tests;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
mod spill_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod told_tests;
#[cfg(test)]
mod tree_tests;
#[cfg(test)]
mod undecrypted_tests;
#[cfg(test)]
mod watcher_tests;
#[cfg(test)]
mod window_tests;
