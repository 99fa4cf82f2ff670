//! How each handler of an informer fares.
//!
//! In: what a handler was given, and how it ended. Out: counts, by the handler's name. Never: holds a
//! handler.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_apimachinery::Revision;

/// How a handler fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerStats {
    /// Notices that it was given.
    pub given: u64,
    /// Notices over which it panicked. Each is gone, and it goes on with the next.
    pub panics: u64,
    /// Changes that it was told as the sum of several, because it was too slow for each.
    pub conflated: u64,
    /// Up to where it was told everything.
    pub revision: Option<Revision>,
}

/// The handlers of an informer, by the names that they were given.
#[derive(Default)]
pub(crate) struct Handlers(Mutex<Vec<(String, Weak<Counts>)>>);

impl Handlers {
    pub(crate) fn add(&self, name: &str, counts: &Arc<Counts>) {
        let mut handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.retain(|(_, counts)| counts.strong_count() > 0);
        handlers.push((name.to_owned(), Arc::downgrade(counts)));
    }

    /// How each fares that is at work.
    pub(crate) fn stats(&self) -> Vec<(String, HandlerStats)> {
        let handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |(name, counts): &(String, Weak<Counts>)| Some((name.clone(), counts.upgrade()?.stats()));
        handlers.iter().filter_map(of).collect()
    }
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) given: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) conflated: AtomicU64,
    // 0 is none.
    pub(crate) revision: AtomicU64,
}

impl Counts {
    pub(crate) fn stats(&self) -> HandlerStats {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        HandlerStats {
            given: count(&self.given),
            panics: count(&self.panics),
            conflated: count(&self.conflated),
            revision: Revision::new(count(&self.revision)),
        }
    }

    pub(crate) fn note(&self, conflated: u64, revision: Option<Revision>) {
        self.conflated.store(conflated, Ordering::Relaxed);
        self.revision.store(revision.map_or(0, Revision::get), Ordering::Relaxed);
    }
}
