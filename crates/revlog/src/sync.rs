//! What threads share through: here the real things; `tests/interleavings.rs` puts loom's in their place.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use forebay_rt::{Bell, Ear};

/// Readers that may begin to wait at the same time without waiting for each other.
pub(crate) const BELL_ROWS: usize = 8;
