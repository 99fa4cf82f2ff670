//! The counters of a cache. `documents` shows them under kube-apiserver's metric names.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one cache. All of them only grow, except `loose_bytes` and `watchers_of_all`.
#[derive(Debug, Default)]
pub struct Counters {
    /// Changes that came from the store.
    pub events_received: AtomicU64,
    /// Events that went to the window, and so to every watcher.
    pub events_dispatched: AtomicU64,
    /// How often an event woke a waiting watcher: one that reads a lane to which the event belongs, or the
    /// whole log.
    pub watchers_woken: AtomicU64,
    /// Objects sent as the initial state of a watch.
    pub init_events: AtomicU64,
    /// Times the cache was filled from the store.
    pub initializations: AtomicU64,
    /// Times the cache was filled without history, because that was compacted again and again meanwhile.
    pub windows_begun_late: AtomicU64,
    /// How often the cache, and its watchers with it, went on across a hole in the history.
    pub holes_bridged: AtomicU64,
    /// Keys at which the cache was found to differ from the store.
    pub mismatches: AtomicU64,
    /// How often the cache was compared with the store and found to be equal, and how often not.
    pub checks: AtomicU64,
    pub checks_failed: AtomicU64,
    /// Times the store had gone back to an older revision.
    pub went_back: AtomicU64,
    /// How often the cache fell behind its feed and went on from the store's history, which watchers do not
    /// notice.
    pub resumptions: AtomicU64,
    /// Pages of past states that were read from the store, because the window did not reach back so far.
    pub store_reads: AtomicU64,
    /// Watchers that are there, and are sent every event: a write costs what they take.
    pub watchers_of_all: AtomicU64,
    /// Watchers that fell out of the window.
    pub terminated_watchers: AtomicU64,
    /// How often the cache dropped all of its objects, because the store told it to.
    pub let_gos: AtomicU64,
    /// Stored values that could not be read.
    pub decode_errors: AtomicU64,
    /// Bytes in plain form that are not at rest yet: now, and the most so far.
    pub loose_bytes: AtomicU64,
    pub loose_bytes_max: AtomicU64,
    /// How often the cache took in more plain bytes than it has room for, because it had waited for room in
    /// vain.
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
