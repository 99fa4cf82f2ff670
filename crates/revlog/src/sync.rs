//! The primitives that threads share state through. Here they are std's and `rt`'s; `tests/interleavings.rs`
//! puts loom's in their place.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use forebay_rt::{Bell, Ear};

/// Rows of a log's bell: so many readers may begin to wait at the same time without contending for a lock.
pub(crate) const BELL_ROWS: usize = 8;
