//! What a cache counts; `endpoints` writes it out under kube-apiserver's metric names.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one cache. They only grow, but for what is loose.
#[derive(Debug, Default)]
pub struct Counters {
    /// Changes that came from the store.
    pub events_received: AtomicU64,
    /// Events that went to the window, and so to every watcher.
    pub events_dispatched: AtomicU64,
    /// Times that an event woke a waiting watcher: each that reads a lane of the event, or the whole log.
    pub watchers_woken: AtomicU64,
    /// Objects sent as the initial state of a watch.
    pub init_events: AtomicU64,
    /// Times the cache was filled from the store.
    pub initializations: AtomicU64,
    /// Times the cache was filled without history, because that was compacted again and again meanwhile.
    pub windows_begun_late: AtomicU64,
    /// Times the cache went on across a hole in the history, and its watchers with it.
    pub holes_bridged: AtomicU64,
    /// Keys at which the cache was found to differ from the store.
    pub mismatches: AtomicU64,
    /// Times the cache was held against the store and was found to be the same, and not to be.
    pub checks: AtomicU64,
    pub checks_failed: AtomicU64,
    /// Times the store had gone back to an older revision.
    pub went_back: AtomicU64,
    /// Times the cache fell behind its feed and went on from the store's history, unnoticed by watchers.
    pub resumptions: AtomicU64,
    /// Pages of past states that only the store still had.
    pub store_reads: AtomicU64,
    /// Watchers that fell out of the window.
    pub terminated_watchers: AtomicU64,
    /// Times that all was let go of, because the store said so.
    pub let_gos: AtomicU64,
    /// Stored values that could not be read.
    pub decode_errors: AtomicU64,
    /// Bytes that are in plain form and not at rest yet, now and at most.
    pub loose_bytes: AtomicU64,
    pub loose_bytes_max: AtomicU64,
    /// Times the cache went on although it had waited in vain for room for more of them.
    pub rooms_overdrawn: AtomicU64,
}

impl Counters {
    pub(crate) fn note_loose(&self, bytes: usize) {
        self.loose_bytes.store(bytes as u64, Ordering::Relaxed);
        self.loose_bytes_max.fetch_max(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }
}
