//! A store that can be made to stall, to fail and to forget: the engine behind a way to it that a test
//! closes. It can be put back to what another engine holds.
//!
//! In: the server's calls, and [`Faults`]. Out: the engine's answers, late or not at all, and a count of the
//! calls. Never: an answer that the engine did not give.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, BoxFuture, Change, Feed, FeedError, FeedStep, Layer, Range, RangePage, ReadError, Txn, TxnError,
    TxnResponse, Versioned,
};
use forebay_embedded::Engine;
use forebay_revlog::{Limits, Writer};
use tokio::sync::{Notify, watch};

/// What is wrong with the way to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Way {
    #[default]
    Open,
    /// No answer comes.
    Silent,
    /// Every call fails: there is no leader.
    Leaderless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Faults {
    /// Pages of the state, and where the history begins.
    pub range: Way,
    /// What is current.
    pub barrier: Way,
    /// New feeds.
    pub feed: Way,
    /// Feeds that are open bring nothing.
    pub feeds_stalled: bool,
}

/// Calls that reached the store.
#[derive(Debug, Default)]
pub struct Calls {
    pub ranges: AtomicU64,
    pub gets: AtomicU64,
    pub feeds: AtomicU64,
}

/// See the module's doc.
pub struct FaultyStore {
    // The last one answers; those before it are of what was lost.
    engines: Mutex<Vec<Arc<Engine>>>,
    faults: watch::Sender<Faults>,
    // Of the feeds that are open.
    relays: Mutex<Vec<Relay>>,
    pub calls: Calls,
    /// Rung when the engine's writer has something to do.
    pub nudge: Notify,
}

impl FaultyStore {
    pub fn new(engine: Arc<Engine>) -> FaultyStore {
        FaultyStore {
            engines: Mutex::new(vec![engine]),
            faults: watch::Sender::default(),
            relays: Mutex::default(),
            calls: Calls::default(),
            nudge: Notify::new(),
        }
    }

    /// What was written since is lost; feeds that are open do not hear of it.
    pub fn put_back(&self, engine: Arc<Engine>) {
        self.engines.lock().unwrap_or_else(PoisonError::into_inner).push(engine);
    }

    fn engine(&self) -> Arc<Engine> {
        let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.last().expect("there is one").clone()
    }

    pub fn set(&self, change: impl FnOnce(&mut Faults)) {
        self.faults.send_modify(change);
        self.carry();
    }

    /// Brings feeds that were stalled what there is, of which they only hold the last: a cache that has not
    /// seen the rest by now has lost it.
    pub fn carry_on_forgetful(&self) {
        self.faults.send_modify(|faults| faults.feeds_stalled = false);
        for relay in self.relays.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            relay.carry();
            relay.log.evict(u64::MAX);
        }
    }

    /// Brings feeds what there is, unless they are stalled: the engine's own are that current whenever
    /// somebody looks.
    fn carry(&self) {
        if !self.faults.borrow().feeds_stalled {
            self.relays.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(Relay::carry);
        }
    }

    /// Pages, single keys and feeds that were asked for.
    pub fn called(&self) -> [u64; 3] {
        [&self.calls.ranges, &self.calls.gets, &self.calls.feeds].map(|count| count.load(Ordering::Relaxed))
    }

    /// Goes the way, once it is not silent.
    async fn go(&self, way: impl Fn(&Faults) -> Way) -> Result<(), String> {
        let mut faults = self.faults.subscribe();
        let now = faults.wait_for(|faults| way(faults) != Way::Silent).await.map_err(|e| e.to_string())?;
        match way(&now) {
            Way::Leaderless => Err("etcdserver: no leader".to_string()),
            Way::Open | Way::Silent => Ok(()),
        }
    }
}

impl Layer for FaultyStore {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine()
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        self.nudge.notify_one();
        Box::pin(async move {
            let outcome = Backend::commit(&*self.engine(), txn).await;
            self.carry();
            outcome
        })
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        self.calls.gets.fetch_add(1, Ordering::Relaxed);
        let engine = self.engine();
        Box::pin(async move { Backend::get(&*engine, key).await })
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        self.calls.ranges.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            self.go(|faults| faults.range).await.map_err(|cause| ReadError::Failed { cause })?;
            Backend::range(&*self.engine(), range).await
        })
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async move {
            self.go(|faults| faults.barrier).await.map_err(|cause| ReadError::Failed { cause })?;
            let current = Backend::barrier(&*self.engine()).await;
            self.carry();
            current
        })
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        self.calls.feeds.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            self.go(|faults| faults.feed).await.map_err(|cause| FeedError::Failed { cause })?;
            self.nudge.notify_one();
            let feed = Backend::feed(&*self.engine(), prefix, after).await?;
            let limits = Limits { items_max: usize::MAX, bytes_max: usize::MAX, age_ms_max: 1 };
            let log = Writer::new(after.get(), limits);
            let cursor = log.log().cursor(after.get()).expect("it begins there");
            let mut relay = Relay { feed, log, lost: false };
            if !self.faults.borrow().feeds_stalled {
                relay.carry();
            }
            self.relays.lock().unwrap_or_else(PoisonError::into_inner).push(relay);
            Ok(Feed::new(None, cursor))
        })
    }
}

/// A feed of the engine, and the log that a cache follows instead.
struct Relay {
    feed: Feed,
    log: Writer<Change>,
    // There is nothing more to be had from the feed.
    lost: bool,
}

impl Relay {
    /// Carries on what there is.
    fn carry(&mut self) {
        let mut changes = Vec::new();
        while !self.lost {
            match self.feed.take(usize::MAX, &mut changes) {
                Ok(FeedStep::Changes) => {
                    self.log.append(changes.drain(..).map(|change| (change.revision.get(), change, 0)), 0);
                }
                Ok(FeedStep::Progress(revision)) => self.log.announce(revision.get()),
                Ok(FeedStep::Idle)
                | Err(FeedError::Closed | FeedError::Failed { .. } | FeedError::WentBack { .. }) => return,
                // The engine's own memory was too short: so is the log's, of something that nobody sees.
                Err(FeedError::Compacted { oldest }) => {
                    let unseen = |revision| Change { key: Key::from("/unseen"), revision, value: None };
                    self.log.append([oldest, oldest.next()].map(|at| (at.get(), unseen(at), 0)), 0);
                    self.log.evict(u64::MAX);
                    self.lost = true;
                }
            }
        }
    }
}
