//! What a request takes is put down to whoever asked: from its head until its answer is over.
//!
//! In: who asks, and what becomes of it. Out: numbers on an [account](crate::Account). Owner: whoever has the
//! request, and its watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use forebay_rt::{Clock, Duration, Instant};

use crate::account::{Account, Gauge};
use crate::counts::{Count, ListedAt};
use crate::ledger::Ledger;
use crate::read_before::ReadBefore;
use crate::report::Flows;
use crate::who::Who;

/// CPU time of an event that is sent to one more watch; docs/performance.md has what was measured.
const EVENT: Duration = Duration::from_micros(10);

/// The ledger, and the time that it goes by. Cheap to clone.
#[derive(Clone)]
pub struct Usages {
    ledger: Arc<Ledger>,
    clock: Clock,
    start: Instant,
}

/// What one request takes, until it is dropped.
pub struct Usage {
    account: Arc<Account>,
    usages: Usages,
    /// The collection that it is about, and those that were read before.
    read: (Arc<ReadBefore>, u32),
    /// CPU time that is not put down yet, in nanoseconds: it may come to something else.
    cpu: AtomicU64,
    held: AtomicI64,
    /// What a watch holds once its state is sent.
    keeps: AtomicU64,
    /// Since when a watch's client has not taken what there is, in milliseconds; 0 when it has.
    behind_ms: AtomicI64,
    is_watch: AtomicBool,
}

impl Usages {
    /// - `seed`: see [`Ledger::new`].
    pub fn new(clock: Clock, seed: u64) -> Usages {
        Usages { ledger: Arc::new(Ledger::new(Duration::ZERO, seed)), start: clock.now(), clock }
    }

    /// A request of `who`.
    ///
    /// - `read`: what was read before on its connection.
    /// - `collection`: a hash of the one that it is about.
    pub fn begin(&self, who: &Who<'_>, read: Arc<ReadBefore>, collection: u32) -> Usage {
        let account = self.ledger.account(who, self.now());
        account.add(Count::Requests, 1);
        Usage {
            account,
            usages: self.clone(),
            read: (read, collection),
            cpu: AtomicU64::new(0),
            held: AtomicI64::new(0),
            keeps: AtomicU64::new(0),
            behind_ms: AtomicI64::new(0),
            is_watch: AtomicBool::new(false),
        }
    }

    /// All that is known.
    pub fn flows(&self) -> Flows {
        self.ledger.report(self.now())
    }

    fn now(&self) -> Duration {
        self.clock.now().duration_since(self.start)
    }
}

impl Usage {
    /// It had its turn.
    ///
    /// - `cpu`, `bytes`: its price.
    /// - `keeps`: what it holds on top of that for as long as it is open, if it is a watch.
    pub fn begun(&self, cpu: Duration, bytes: u64, keeps: u64) {
        self.came_to(cpu);
        self.keeps.store(keeps, Relaxed);
        self.hold(bytes.saturating_add(keeps));
    }

    /// It takes so much CPU time, whatever was foreseen.
    pub fn came_to(&self, cpu: Duration) {
        self.cpu.store(nanos(cpu), Relaxed);
    }

    /// The work on it is done: what it came to is put down. It is, too, of one that is given up.
    pub fn answered(&self) {
        self.account.add(Count::CpuNanos, self.cpu.swap(0, Relaxed));
    }

    /// The state that its watch began with is sent.
    pub fn state_is_sent(&self) {
        self.hold(self.keeps.load(Relaxed));
    }

    /// It holds so many bytes from now on.
    fn hold(&self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let before = self.held.swap(bytes, Relaxed);
        self.account.shift(Gauge::HeldBytes, bytes - before);
    }

    /// It is a LIST that had its turn.
    pub fn lists(&self, at: ListedAt) {
        let is_again = at != ListedAt::Page && self.read.0.note(self.read.1);
        self.account.listed(at, is_again, self.usages.now());
    }

    /// It is a watch that begins.
    ///
    /// - `has_state`: it is sent the state first.
    pub fn watches(&self, has_state: bool) {
        let is_again = self.read.0.note(self.read.1);
        self.account.watched(has_state.then_some(is_again), self.usages.now());
        if !self.is_watch.swap(true, Relaxed) {
            self.account.shift(Gauge::Watches, 1);
        }
    }

    /// It is refused for being one too many.
    pub fn refused(&self) {
        self.account.add(Count::Refused, 1);
    }

    /// Its place in history is gone.
    pub fn expired(&self) {
        self.account.expired(self.usages.now());
    }

    pub fn sent(&self, bytes: usize) {
        self.account.add(Count::BytesSent, bytes as u64);
    }

    /// So many events were made for its watch.
    pub fn made(&self, events: u64) {
        self.account.add(Count::CpuNanos, nanos(EVENT).saturating_mul(events));
    }

    /// There is something to be sent to its watch, whose client has not taken what came before.
    pub fn falls_behind(&self, now: Instant) {
        if self.behind_ms.load(Relaxed) != 0 {
            return;
        }
        let now = now.duration_since(self.usages.start).as_millis();
        let now = i64::try_from(now).unwrap_or(i64::MAX).max(1);
        self.behind_ms.store(now, Relaxed);
        self.account.shift(Gauge::Behind, 1);
        self.account.shift(Gauge::BehindSinceMs, now);
    }

    /// Its client has taken it.
    pub fn catches_up(&self) {
        if self.behind_ms.load(Relaxed) == 0 {
            return;
        }
        let since = self.behind_ms.swap(0, Relaxed);
        self.account.shift(Gauge::Behind, -1);
        self.account.shift(Gauge::BehindSinceMs, -since);
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        self.answered();
        self.catches_up();
        self.hold(0);
        if *self.is_watch.get_mut() {
            self.account.shift(Gauge::Watches, -1);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
