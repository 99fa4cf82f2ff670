//! What became of a collection's requests: counts, and how it fares now.
//!
//! In: what the driver does and sees. Out: [`Stats`], [`Health`]. Owner: shared by the driver, which writes,
//! and whoever asks. Never: decides anything.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_backend::Change;
use forebay_client::reflector::{self, Fault, ListReason, Report};
use forebay_client::{Ask, Collection};
use forebay_rt::{Duration, Instant};
use tokio::sync::watch;

use crate::ceiling::OverLimit;

/// What a collection has cost so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Whole states that were had, and why they were asked for.
    pub states: BTreeMap<&'static str, u64>,
    /// Requests for a page.
    pub pages_asked: u64,
    /// Requests for a whole state and what changes afterwards.
    pub watch_lists_asked: u64,
    /// Requests for what changes.
    pub watches_asked: u64,
    /// Answers that were in protobuf.
    pub protobuf_answers: u64,
    /// Objects and changes that were taken.
    pub objects_taken: u64,
    /// Those of them that are kept in the deflated text that they came in.
    pub objects_kept_packed: u64,
    /// Bytes of answers, as they came over the network.
    pub bytes_read: u64,
    /// The most that was held at rest, also of states on their way.
    pub held_bytes_max: usize,
    /// Bytes that are in files now, because they are too much: see [`AtLimit::Spill`](crate::AtLimit).
    pub spilled_bytes: usize,
    /// How often something that was put there did not come back as it was.
    pub spill_losses: u64,
    /// Requests and answers that came to grief below HTTP, by how.
    pub faults: BTreeMap<String, u64>,
}

/// How a collection fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Since when a whole state is held; it stays when the connection does not.
    pub synced_since: Option<Instant>,
    /// When something last came from the server that was not a refusal.
    pub last_heard_at: Option<Instant>,
    /// Why it fails now, if it does, and since when.
    pub failing: Option<(reflector::Why, Instant)>,
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    pages: AtomicU64,
    watch_lists: AtomicU64,
    watches: AtomicU64,
    protobuf: AtomicU64,
    objects: AtomicU64,
    packed: AtomicU64,
    bytes: AtomicU64,
    // At rest, also of a state that is still on its way.
    held: AtomicUsize,
    held_max: AtomicUsize,
    // Handlers, and those who wait for a state.
    awaited: AtomicUsize,
    // No more than metadata is held of an object.
    partial: AtomicBool,
    // Nothing is held, and why.
    refused: watch::Sender<Option<Refused>>,
    // Bytes in files, and how often some of them did not come back.
    spilled: AtomicUsize,
    spill_losses: AtomicU64,
    rest: Mutex<Rest>,
}

/// Why nothing is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is too much.
    OverLimit(OverLimit),
    /// It was too much, and the file that it was in lost some of it.
    SpillLost,
}

#[derive(Debug, Default)]
struct Rest {
    states: BTreeMap<&'static str, u64>,
    faults: BTreeMap<String, u64>,
    // With the moment that its times are counted from.
    health: Option<(reflector::Health, Instant)>,
}

/// Somebody waits for what comes of collections, until it is dropped.
pub(crate) struct Awaiting(Vec<Arc<Progress>>);

impl Awaiting {
    pub(crate) fn new(collections: impl Iterator<Item = Arc<Progress>>) -> Awaiting {
        let collections: Vec<_> = collections.collect();
        collections.iter().for_each(|progress| {
            progress.awaited.fetch_add(1, Ordering::Relaxed);
        });
        Awaiting(collections)
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        for progress in &self.0 {
            progress.awaited.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Progress {
    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn asked(&self, ask: &Ask) {
        let count = match ask {
            Ask::List { .. } => &self.pages,
            Ask::Watch { .. } => &self.watches,
            Ask::WatchList { .. } => &self.watch_lists,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, is_protobuf: bool) {
        self.protobuf.fetch_add(u64::from(is_protobuf), Ordering::Relaxed);
    }

    pub(crate) fn took(&self, change: Option<&Change>) {
        self.objects.fetch_add(u64::from(change.is_some()), Ordering::Relaxed);
    }

    /// So many of them in the text that they came in.
    pub(crate) fn took_packed(&self, objects: usize) {
        self.packed.fetch_add(objects as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, fault: Fault) {
        *self.rest().faults.entry(format!("{fault:?}")).or_default() += 1;
    }

    pub(crate) fn holds(&self, bytes: usize) {
        self.held.store(bytes, Ordering::Relaxed);
        self.held_max.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Bytes that are held at rest, also of a state that is still on its way.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether somebody waits for what comes.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) > 0
    }

    /// So many bytes are in a file now.
    pub(crate) fn spilled(&self, bytes: usize) {
        self.spilled.fetch_add(bytes, Ordering::Relaxed);
    }

    /// They are not any more.
    pub(crate) fn unspilled(&self, bytes: usize) {
        self.spilled.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A file lost something.
    pub(crate) fn lost_spilled(&self) {
        self.spill_losses.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn partial(&self) {
        self.partial.store(true, Ordering::Relaxed);
    }

    /// Whether no more than metadata is held of an object.
    pub(crate) fn is_partial(&self) -> bool {
        self.partial.load(Ordering::Relaxed)
    }

    /// Nothing is held, or not any more.
    pub(crate) fn refuses(&self, why: Option<Refused>) {
        if self.refused() != why {
            self.refused.send_replace(why);
        }
    }

    /// Why nothing is held, if it is so now.
    pub(crate) fn refused(&self) -> Option<Refused> {
        *self.refused.borrow()
    }

    /// Waits until nothing is held. Cancel-safe.
    pub(crate) async fn until_refused(&self) -> Refused {
        let mut refused = self.refused.subscribe();
        loop {
            if let Ok(why) = refused.wait_for(Option::is_some).await.as_deref()
                && let Some(why) = why
            {
                return *why;
            }
            // Its sender is this: there is no end.
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn fares(&self, health: reflector::Health, began: Instant) {
        self.rest().health = Some((health, began));
    }

    pub(crate) fn report(&self, collection: &Collection, report: Report) {
        let path = collection.path();
        match report {
            Report::Listed { why, way, revision } => {
                *self.rest().states.entry(reason(why)).or_default() += 1;
                tracing::info!(path, why = reason(why), ?way, %revision, "a whole state was had");
            }
            Report::Failing(why) => tracing::warn!(path, ?why, "the collection cannot be followed"),
            Report::Recovered => tracing::info!(path, "the collection is followed again"),
            report => tracing::info!(path, ?report, "of the collection"),
        }
    }

    /// Objects that were taken, and bytes that were read.
    pub(crate) fn taken(&self) -> (u64, u64) {
        (self.objects.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn stats(&self) -> Stats {
        let rest = self.rest();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Stats {
            states: rest.states.clone(),
            pages_asked: count(&self.pages),
            watch_lists_asked: count(&self.watch_lists),
            watches_asked: count(&self.watches),
            protobuf_answers: count(&self.protobuf),
            objects_taken: count(&self.objects),
            objects_kept_packed: count(&self.packed),
            bytes_read: count(&self.bytes),
            held_bytes_max: self.held_max.load(Ordering::Relaxed),
            spilled_bytes: self.spilled.load(Ordering::Relaxed),
            spill_losses: count(&self.spill_losses),
            faults: rest.faults.clone(),
        }
    }

    pub(crate) fn health(&self) -> Health {
        let Some((health, began)) = self.rest().health else {
            return Health { synced_since: None, last_heard_at: None, failing: None };
        };
        let at = |since: Duration| began + since;
        Health {
            synced_since: health.synced_since.map(at),
            last_heard_at: health.last_heard_at.map(at),
            failing: health.failing.map(|failing| (failing.why, at(failing.since))),
        }
    }
}

/// As a metric's label.
pub(crate) fn reason(why: ListReason) -> &'static str {
    match why {
        ListReason::First => "first",
        ListReason::Expired => "expired",
        ListReason::WentBack => "went_back",
        ListReason::Restored => "restored",
        ListReason::LostEvent => "lost_event",
        ListReason::SameErrorTwice => "same_error_twice",
        ListReason::Garbled => "garbled",
        ListReason::ServedAgain => "served_again",
        ListReason::MadeAnew => "made_anew",
        ListReason::LetGo => "let_go",
    }
}
