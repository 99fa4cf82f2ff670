//! The answers that are being read, and the end of those whose readers have stopped.
//!
//! In: answers that hold memory until they are read. Out: answers whose readers take nothing for
//! [`STALL_WAIT`], or for which there is no memory, give it back and are broken off by a reset, never ended
//! as if they were complete. Each answer decides by itself whether it may go on to wait. Never: knows what an
//! answer says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_rt::{Clock, Duration, Instant};

use crate::limits::{STALL_PERIOD, STALL_WAIT};

/// All answers that are being read. Cheap to clone.
#[derive(Clone)]
pub struct StalledReaders {
    pub(crate) clock: Clock,
    // One entry an answer, oldest first; the entries of finished ones are dropped at the next look.
    pub(crate) all: Arc<Mutex<Vec<Begun>>>,
    // Counts the answers that were broken off.
    let_go: Arc<LetGo>,
}

/// How many answers were broken off since the start, by reason.
#[derive(Debug, Default)]
struct LetGo {
    stalled: AtomicU64,
    short_of_memory: AtomicU64,
}

/// Figures about the answers that are being read, and counts of those that were broken off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderTotals {
    pub open: usize,
    /// The age of the oldest open answer.
    pub oldest: Duration,
    pub stalled: u64,
    pub short_of_memory: u64,
}

/// An answer, and since when it is being read.
type Begun = (Instant, Weak<dyn Stalls>);

/// An answer that may stall.
pub trait Stalls: Send + Sync {
    /// Gives back what the answer holds and breaks it off, if its client has taken nothing since `since`, and
    /// the answer does not choose to wait. Returns whether it did.
    fn let_go(&self, since: Instant, why: LetGoFor) -> bool;
}

/// Why an answer is broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetGoFor {
    Stalled,
    ShortOfMemory,
}

impl StalledReaders {
    pub fn new(clock: Clock) -> StalledReaders {
        StalledReaders { clock, all: Arc::default(), let_go: Arc::default() }
    }

    /// Watches over `answer` until it is dropped.
    pub fn watch_over<S: Stalls + 'static>(&self, answer: &Arc<S>) {
        let answer: Weak<S> = Arc::downgrade(answer);
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push((self.clock.now(), answer));
    }

    /// Breaks off answers that have stalled, for ever.
    pub async fn end_them(self) {
        loop {
            self.clock.sleep(STALL_PERIOD).await;
            self.end_once();
        }
    }

    /// Breaks off at most `max` answers whose readers have taken nothing for `wait`, those first that were
    /// begun first. Returns how many it were.
    pub fn let_go_of(&self, wait: Duration, max: usize) -> usize {
        let Some(since) = self.clock.now().checked_sub(wait) else { return 0 };
        let stalled = |(_, answer): &&(Instant, Arc<dyn Stalls>)| answer.let_go(since, LetGoFor::Stalled);
        let count = self.open().iter().filter(stalled).take(max).count();
        self.let_go.stalled.fetch_add(count as u64, Ordering::Relaxed);
        count
    }

    /// Breaks off one in eight of the answers that are at least `age` old, those that were begun first, even
    /// if their readers read. Returns how many it were.
    pub fn let_go_of_oldest(&self, age: Duration) -> usize {
        let now = self.clock.now();
        let mut open = self.open();
        open.retain(|(begun, _)| now.duration_since(*begun) >= age);
        let some = open.len().div_ceil(8);
        let count =
            open.iter().filter(|(_, answer)| answer.let_go(now, LetGoFor::ShortOfMemory)).take(some).count();
        self.let_go.short_of_memory.fetch_add(count as u64, Ordering::Relaxed);
        count
    }

    /// The figures as they are now.
    pub fn totals(&self) -> ReaderTotals {
        let (open, now) = (self.open(), self.clock.now());
        ReaderTotals {
            open: open.len(),
            oldest: open.first().map_or(Duration::ZERO, |(begun, _)| now.duration_since(*begun)),
            stalled: self.let_go.stalled.load(Ordering::Relaxed),
            short_of_memory: self.let_go.short_of_memory.load(Ordering::Relaxed),
        }
    }

    /// The answers that are being read, oldest first.
    fn open(&self) -> Vec<(Instant, Arc<dyn Stalls>)> {
        let mut open = Vec::new();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(begun, answer)| {
            let answer = answer.upgrade();
            let is_open = answer.is_some();
            open.extend(answer.map(|answer| (*begun, answer)));
            is_open
        });
        // After thousands of short answers a second, much of the capacity would stay unused.
        if all.len() * 4 < all.capacity() {
            let room = all.len() * 2;
            all.shrink_to(room);
        }
        open
    }

    pub(crate) fn end_once(&self) {
        let stalled = self.let_go_of(STALL_WAIT, usize::MAX);
        if stalled > 0 {
            tracing::info!(answers = stalled, "let go of answers that nobody reads on");
        }
    }
}
