//! What threads share through: here the real things; loom's where interleavings are tested.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};
