//! The embedded storage engine: one directory, no other process.
//!
//! In: the contract of `forebay-backend`, a directory. Out: commits that survive a crash, reads as of any
//! kept revision, feeds. One table on redb in revision order, an index of it in memory, one writer thread
//! that commits many transactions with one sync. The bytes on disk: `docs/formats/embedded.md`.
//!
//! Never: knows what a value means; answers a write before it is durable; drops what was acknowledged in
//! silence.

mod backlog;
mod batch;
mod compaction;
mod defrag;
mod disk;
mod engine;
mod error;
mod expiry;
pub mod faults;
mod feeds;
mod guard;
mod index;
pub mod limits;
mod open;
mod options;
mod queue;
mod row;
mod shared;
pub mod snapshot;
mod store;
mod witness;
mod writer;
#[cfg(test)]
mod writer_tests;

pub use disk::{Disk, FreeBytes, Spare, Syncs};
pub use engine::{Engine, Stepper};
pub use error::OpenError;
pub use options::Options;
