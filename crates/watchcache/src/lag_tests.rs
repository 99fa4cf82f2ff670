//! A cache that falls behind: it goes on from the store's history, reads the state again only when that is gone as well,
//! and says so when it cannot prove that it is current.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, BoxFuture, Change, Feed, FeedError, Outcome, Range, RangePage, ReadError, Size, Txn, TxnError,
    Versioned,
};
use forebay_embedded::Engine;
use forebay_embedded::limits::{HISTORY_MS, MARK_EVERY_MS};
use forebay_revlog::{Limits, Writer};
use forebay_rt::{Clock, Tasks};

use crate::WatchStep;
use crate::tests::{PREFIX, World, check, everything};

/// The engine, but the first feed is what the test puts into a log that holds one change.
struct Short {
    engine: Arc<Engine>,
    first: Mutex<Option<Feed>>,
    // The revisions after which feeds were asked for.
    asked: Mutex<Vec<u64>>,
    // Whether it has no feed but the first.
    drops: AtomicBool,
    // Above zero, what is said to be current, whatever is.
    current: AtomicU64,
}

impl Short {
    fn new(engine: Arc<Engine>) -> (Arc<Short>, Writer<Change>) {
        let writer = Writer::new(1, Limits { items_max: 1, bytes_max: usize::MAX, age_ms_max: u64::MAX });
        let first = Feed::new(None, writer.log().cursor(1).expect("held"));
        let short = Short {
            engine,
            first: Mutex::new(Some(first)),
            asked: Mutex::default(),
            drops: AtomicBool::new(false),
            current: AtomicU64::new(0),
        };
        (Arc::new(short), writer)
    }

    fn asked(&self) -> Vec<u64> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

impl Backend for Short {
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, TxnError>> {
        Backend::commit(&*self.engine, txn)
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        self.engine.get(key)
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Backend::range(&*self.engine, range)
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        match self.current.load(Ordering::Relaxed) {
            0 => self.engine.barrier(),
            current => Box::pin(std::future::ready(Ok(Revision::from_log(current)))),
        }
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        self.engine.oldest()
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        self.asked.lock().expect("not poisoned").push(after.get());
        match self.first.lock().expect("not poisoned").take() {
            Some(first) => Box::pin(std::future::ready(Ok(first))),
            None if self.drops.load(Ordering::Relaxed) => {
                Box::pin(std::future::ready(Err(FeedError::Compacted { oldest: after.next() })))
            }
            None => Backend::feed(&*self.engine, prefix, after),
        }
    }

    fn size(&self) -> Size {
        self.engine.size()
    }
}

fn change(place: &str, revision: Revision) -> (u64, Change, usize) {
    let key = Key::from(format!("{PREFIX}{place}"));
    (revision.get(), Change { key, revision, value: None }, 0)
}

#[tokio::test]
async fn a_cache_that_falls_behind_goes_on_from_history_and_its_watchers_do_not_notice() {
    let (clock, _hand) = Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let (short, mut log) = Short::new(engine.clone());
    let cacher = World::start(short.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    let mut watcher = world.cacher.watch(everything(), Revision::FIRST).expect("held");
    let first = world.put("a/x", "").await;
    let (key, put) = (Key::from(format!("{PREFIX}a/x")), change("a/x", first).1);
    let value = world.engine.get(&key).await.expect("open").map(|found| found.value);
    log.append([(first.get(), Change { value, ..put }, 0)], 0);
    check(expect!["+x@2"], &world.drain(&mut watcher).await);
    // The log forgets all but the last of these before the cache has looked at it.
    let changes = [world.put("a/y", "").await, world.put("a/z", "").await, world.delete("a/y").await];
    log.append(changes.map(|revision| change("a/lost", revision)), 0);
    check(expect!["+y@3 +z@4 -y@5"], &world.drain(&mut watcher).await);
    world.put("a/x", "k=v").await;
    check(expect!["~x@6"], &world.drain(&mut watcher).await);
    assert_eq!(short.asked(), [1, 2]);
    let counters = world.cacher.counters();
    assert_eq!(counters.initializations.load(Ordering::Relaxed), 1);
    assert_eq!(counters.resumptions.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_cache_that_falls_behind_history_too_reads_the_state_again() {
    let (clock, hand) = Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let (short, mut log) = Short::new(engine.clone());
    let cacher = World::start(short.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    let first = world.put("a/x", "").await;
    log.announce(first.get());
    let mut watcher = world.cacher.watch(everything(), first).expect("will come");
    let changes = [world.put("a/y", "").await, world.delete("a/x").await];
    hand.advance_ms(MARK_EVERY_MS);
    world.engine.settle().await;
    hand.advance_ms(HISTORY_MS);
    world.engine.settle().await;
    log.append(changes.map(|revision| change("a/lost", revision)), 0);
    watcher.ready().await;
    assert!(matches!(watcher.try_next(), Some(WatchStep::Closed)));
    world.cacher.wait_ready().await;
    check(expect!["4: a/y@3"], &world.state(None).await);
    assert_eq!(world.cacher.counters().initializations.load(Ordering::Relaxed), 2);
    assert_eq!(world.cacher.counters().resumptions.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_consistent_read_that_cannot_be_proved_is_stale_and_the_next_ones_fail_at_once() {
    let (clock, _hand) = Clock::manual(1_000_003);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let (short, _log) = Short::new(engine);
    let cacher = World::start(short.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let wait = Duration::from_millis(50);
    let fresh = async || {
        let began = clock.now();
        let read = cacher.fresh(began + wait).await;
        let said = read.map_or_else(|error| error.to_string(), |snapshot| snapshot.revision().to_string());
        format!("{said}, {}", if clock.now() - began < wait { "at once" } else { "at the deadline" })
    };
    check(expect!["1, at once"], &fresh().await);
    short.current.store(9, Ordering::Relaxed);
    let stale = "the watch cache could not be proved to be current in time";
    assert_eq!(fresh().await, format!("{stale}, at the deadline"));
    assert_eq!(fresh().await, format!("{stale}, at once"));
    short.current.store(0, Ordering::Relaxed);
    clock.sleep(crate::limits::STALE_HOLD).await;
    check(expect!["1, at once"], &fresh().await);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_drops_what_it_gives_is_read_again_after_a_growing_pause() {
    let (clock, _hand) = Clock::manual(1_000_000);
    let (short, mut log) = Short::new(World::engine(&clock));
    let feed = short.first.lock().expect("not poisoned").take();
    short.drops.store(true, Ordering::Relaxed);
    let cacher = World::start(short.clone(), &clock, &Tasks::new());
    let asked_in = async |seconds: u64| {
        let before = short.asked().len();
        clock.sleep(Duration::from_secs(seconds)).await;
        short.asked().len() - before
    };
    // At 0, 0.1, 0.3, 0.7 s, and so on; in the end every 30 s.
    assert_eq!(asked_in(1).await, 4);
    assert_eq!(asked_in(59).await, 6);
    assert_eq!(asked_in(300).await, 10);
    assert!(cacher.snapshot().is_err(), "it was never filled");
    // Followed for a while, and lost again.
    *short.first.lock().expect("not poisoned") = feed;
    assert_eq!(asked_in(90).await, 1);
    assert!(cacher.snapshot().is_ok());
    log.append([2, 3].map(|revision| change("a/lost", Revision::from_log(revision))), 0);
    assert_eq!(asked_in(1).await, 3, "0.1, 0.3 and 0.7 s after it was lost");
    assert!(cacher.snapshot().is_err(), "what is shown would be the past");
}
