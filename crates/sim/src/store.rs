//! The store as the server sees it: the engine, behind a way that delays, stalls, fails and forgets as a seed
//! decides.
//!
//! In: the server's calls. Out: the engine's answers, late or not at all. What was acknowledged is never
//! changed on the way: a fault here is one that a store behind a network has too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, BoxFuture, Change, Feed, FeedError, FeedStep, Range, RangePage, ReadError, Size, Txn, TxnError,
    TxnResponse, Versioned,
};
use forebay_embedded::Engine;
use forebay_revlog::{Limits, Writer};
use forebay_rt::{Clock, Instant, Random};
use tokio::sync::Notify;

/// What is wrong with the way to the store now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Until then no answer comes back.
    pub stalled_until: Option<Instant>,
    /// From then until then there is no leader: every new call fails.
    pub leaderless: Option<(Instant, Instant)>,
    /// Until then nothing is committed.
    pub frozen_until: Option<Instant>,
    /// Until then feeds bring nothing.
    pub feeds_lag_until: Option<Instant>,
    /// Of what feeds bring after that, all but the newest is forgotten on the way.
    pub feeds_forget: bool,
}

/// A feed of the engine, and the log by which it goes on to a cache.
struct Relay {
    feed: Feed,
    log: Writer<Change>,
}

/// Feeds of one prefix that are read; one that was lost may still be here while another has taken its place.
const FEEDS_MAX: usize = 4;

const NO_LIMITS: Limits = Limits { items_max: usize::MAX, bytes_max: usize::MAX, age_ms_max: u64::MAX };

/// See the module's doc.
pub struct FaultyStore {
    engine: Mutex<Arc<Engine>>,
    clock: Clock,
    random: Random,
    trouble: Mutex<Trouble>,
    // prefix -> how its changes get to those who asked for them last: a cache, and what reads its early
    // history
    relays: Mutex<BTreeMap<String, VecDeque<Relay>>>,
    // Rung when the engine's writer has something to do.
    pub nudge: Notify,
    // Calls that failed because there was no leader.
    failed: AtomicU64,
}

impl FaultyStore {
    pub fn new(engine: Arc<Engine>, clock: Clock, random: Random) -> FaultyStore {
        FaultyStore {
            engine: Mutex::new(engine),
            clock,
            random,
            trouble: Mutex::default(),
            relays: Mutex::default(),
            nudge: Notify::new(),
            failed: AtomicU64::new(0),
        }
    }

    pub fn set_trouble(&self, trouble: Trouble) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
        self.relay();
    }

    /// From now on `engine` answers: the store has gone back. Every feed ends.
    pub fn replace(&self, engine: Arc<Engine>) {
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = engine;
        // Caches look before it is where it was: afterwards nobody could tell.
        let frozen_until = Some(self.clock.now() + Duration::from_millis(500));
        let trouble = Trouble { frozen_until, ..Trouble::default() };
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
        std::mem::take(&mut *self.relays()).into_values().flatten().for_each(|relay| relay.log.lose());
    }

    pub fn engine(&self) -> Arc<Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Brings what is new to the caches.
    pub fn relay(&self) {
        let trouble = self.trouble();
        if trouble.feeds_lag_until.is_some_and(|until| self.clock.now() < until) {
            return;
        }
        let mut relays = self.relays();
        for of_prefix in relays.values_mut() {
            let run = std::mem::take(of_prefix).into_iter();
            *of_prefix = run.filter_map(|relay| relay.run(trouble.feeds_forget)).collect();
        }
        drop(relays);
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).feeds_forget = false;
    }

    fn relays(&self) -> MutexGuard<'_, BTreeMap<String, VecDeque<Relay>>> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something is wrong now.
    pub fn is_troubled(&self) -> bool {
        let (trouble, now) = (self.trouble(), self.clock.now());
        let ends = [
            trouble.frozen_until,
            trouble.stalled_until,
            trouble.feeds_lag_until,
            trouble.leaderless.map(|(_, until)| until),
        ];
        ends.into_iter().flatten().any(|until| now < until)
    }

    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn trouble(&self) -> Trouble {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a leader.
    fn led(&self) -> Result<(), String> {
        let now = self.clock.now();
        if self.trouble().leaderless.is_some_and(|(from, until)| from <= now && now < until) {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return Err("the store has no leader".to_string());
        }
        Ok(())
    }

    /// The way there, or back.
    async fn travel(&self) {
        if self.random.below(4) == 0 {
            self.clock.sleep(Duration::from_millis(1 + self.random.below(20))).await;
        }
        while let Some(until) = self.trouble().stalled_until.filter(|until| self.clock.now() < *until) {
            self.clock.sleep_until(until).await;
        }
    }

    /// A read: there, and back.
    async fn read<T>(&self, read: impl Future<Output = Result<T, ReadError>>) -> Result<T, ReadError> {
        self.travel().await;
        self.led().map_err(|cause| ReadError::Failed { cause })?;
        let answer = read.await;
        self.travel().await;
        answer
    }
}

impl Relay {
    /// Takes over what the engine has; with `forget`, all but the newest is gone before anybody reads it.
    /// None when the engine has nothing more, which whoever reads is told.
    fn run(mut self, forget: bool) -> Option<Relay> {
        if forget {
            self.log.set_limits(Limits { items_max: 1, ..NO_LIMITS }, 0);
        }
        let mut changes = Vec::new();
        loop {
            match self.feed.take(1000, &mut changes) {
                Ok(FeedStep::Changes) => {
                    let item = |change: Change| (change.revision.get(), change, 1);
                    self.log.append(changes.drain(..).map(item), 0);
                }
                Ok(FeedStep::Progress(revision)) => self.log.announce(revision.get()),
                Ok(FeedStep::Idle) => break,
                Err(FeedError::Closed) => return None,
                Err(_) => {
                    self.log.lose();
                    return None;
                }
            }
        }
        self.log.set_limits(NO_LIMITS, 0);
        Some(self)
    }
}

impl Backend for FaultyStore {
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        Box::pin(async move {
            self.travel().await;
            self.led().map_err(|cause| TxnError::Failed { cause })?;
            if self.trouble().frozen_until.is_some_and(|until| self.clock.now() < until) {
                return Err(TxnError::Failed { cause: "the store takes no writes yet".to_string() });
            }
            self.nudge.notify_one();
            let outcome = Backend::commit(&*self.engine(), txn).await;
            self.travel().await;
            outcome
        })
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        Box::pin(self.read(async move { self.engine().get(key).await }))
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(self.read(async move { Backend::range(&*self.engine(), range).await }))
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        // What is current is looked up on arrival, not when the answer is back.
        Box::pin(self.read(async {
            let current = self.engine().barrier().await;
            // A feed reaches what is current without being written to.
            self.relay();
            current
        }))
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(self.read(async { self.engine().oldest().await }))
    }

    fn oldest_known(&self) -> Revision {
        self.engine().oldest_known()
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        Box::pin(async move {
            self.travel().await;
            self.led().map_err(|cause| FeedError::Failed { cause })?;
            self.nudge.notify_one();
            let feed = Backend::feed(&*self.engine(), prefix, after).await?;
            let log = Writer::new(after.get(), NO_LIMITS);
            let relayed = log.log().cursor(after.get());
            if let Some(relay) = (Relay { feed, log }).run(false) {
                let mut relays = self.relays();
                let of_prefix = relays.entry(prefix.to_string()).or_default();
                of_prefix.push_back(relay);
                if of_prefix.len() > FEEDS_MAX {
                    of_prefix.pop_front();
                }
            }
            self.travel().await;
            let relayed = relayed.map_err(|_| FeedError::Compacted { oldest: after })?;
            Ok(Feed::new(None, relayed))
        })
    }

    fn size(&self) -> Size {
        self.engine().size()
    }
}
