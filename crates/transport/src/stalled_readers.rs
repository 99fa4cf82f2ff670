//! The answers that are being read, and what becomes of those that nobody reads on.
//!
//! In: answers that hold something for as long as their readers read. Out: those whose readers take nothing for
//! [`STALL_WAIT`], or that there is no memory for, are let go of, and reset, never ended as if they were whole. Each says by
//! itself whether it waits on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_rt::{Clock, Duration, Instant};

use crate::limits::{STALL_PERIOD, STALL_WAIT};

/// All answers that are being read. Cheap to clone.
#[derive(Clone)]
pub struct StalledReaders {
    pub(crate) clock: Clock,
    // One entry an answer, oldest first; those of finished ones go when they are looked at.
    pub(crate) all: Arc<Mutex<Vec<Begun>>>,
    // Counts readers whose answers were cut.
    let_go: Arc<LetGo>,
}

/// How many answers were let go of since the start, and why.
#[derive(Debug, Default)]
struct LetGo {
    stalled: AtomicU64,
    short_of_memory: AtomicU64,
}

/// What is to be told of the answers that are being read.
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
    /// Lets go of what it holds and breaks off, if its client has taken nothing since `since` and it is not to wait on.
    fn let_go(&self, since: Instant, why: LetGoFor) -> bool;
}

/// LetGoFor an answer is to be let go of.
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

    /// Ends what has stalled, for ever.
    pub async fn end_them(self) {
        loop {
            self.clock.sleep(STALL_PERIOD).await;
            self.end_once();
        }
    }

    /// Ends answers whose readers have taken nothing for `wait`, at most `max` of them, those that were begun first. How
    /// many there were.
    pub fn let_go_of(&self, wait: Duration, max: usize) -> usize {
        let Some(since) = self.clock.now().checked_sub(wait) else { return 0 };
        let stalled = |(_, answer): &&(Instant, Arc<dyn Stalls>)| answer.let_go(since, LetGoFor::Stalled);
        let count = self.open().iter().filter(stalled).take(max).count();
        self.let_go.stalled.fetch_add(count as u64, Ordering::Relaxed);
        count
    }

    /// Ends some of the answers, at least one in eight of those that were begun `age` ago or before, however their readers
    /// get on: those that were begun first.
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

    /// What there is, and what became of others.
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
        // Of thousands of writes a second the answers of some seconds were here.
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
