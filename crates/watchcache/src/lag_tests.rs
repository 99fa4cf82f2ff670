//! A cache that falls behind: it goes on from the store's history, reads the state again only when that is
//! gone as well, and says so when it cannot prove that it is current.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, BoxFuture, Change, Feed, FeedError, Layer, Op, ReadError};
use forebay_embedded::Engine;
use forebay_revlog::{Limits, Writer};
use forebay_rt::{Clock, Tasks};

use crate::tests::{PREFIX, World, check, everything};
use crate::{Interest, Reach};

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
    // Feeds from before are not to be had.
    oldest: AtomicU64,
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
            oldest: AtomicU64::new(1),
        };
        (Arc::new(short), writer)
    }

    fn asked(&self) -> Vec<u64> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

impl Layer for Short {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine.clone()
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        match self.current.load(Ordering::Relaxed) {
            0 => self.engine.barrier(),
            current => Box::pin(std::future::ready(Ok(Revision::from_log(current)))),
        }
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async {
            let oldest = self.engine.oldest().await?;
            Ok(oldest.max(Revision::from_log(self.oldest.load(Ordering::Relaxed))))
        })
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        self.asked.lock().expect("not poisoned").push(after.get());
        match self.first.lock().expect("not poisoned").take() {
            Some(first) => Box::pin(std::future::ready(Ok(first))),
            None if self.drops.load(Ordering::Relaxed) => {
                Box::pin(std::future::ready(Err(FeedError::Compacted { oldest: after.next() })))
            }
            None => match Revision::from_log(self.oldest.load(Ordering::Relaxed)) {
                oldest if after < oldest => {
                    Box::pin(std::future::ready(Err(FeedError::Compacted { oldest })))
                }
                _ => Backend::feed(&*self.engine, prefix, after),
            },
        }
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
async fn who_sees_nothing_of_a_hole_in_the_history_goes_on_and_the_others_list_again() {
    let (clock, _hand) = Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let (short, mut log) = Short::new(engine.clone());
    let cacher = World::start_checked(short.clone(), &clock, &tasks, Duration::from_secs(300));
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    let key = |place: &str| Key::from(format!("{PREFIX}{place}"));
    for place in ["a/kept", "a/changed", "a/deleted", "b/deleted", "a/made-anew"] {
        let revision = world.put(place, "").await;
        let value = world.engine.get(&key(place)).await.expect("open").map(|found| found.value);
        log.append([(revision.get(), Change { key: key(place), revision, value }, 0)], 0);
        world.cacher.fresh(world.soon()).await.expect("taken in");
    }
    let one = |place: &str| Interest::all(Reach::One(key(place)));
    let labelled = Interest {
        labels: forebay_apimachinery::selector::LabelSelector::parse("k=v").expect("valid").into(),
        ..everything()
    };
    let after = Revision::from_log(6);
    let interests =
        [everything(), one("a/deleted"), one("a/kept"), labelled, Interest::all(Reach::Below(key("b/")))];
    let mut watchers = interests.map(|interest| world.cacher.watch(interest, after).expect("held"));
    let mut early = world.cacher.watch(everything(), Revision::from_log(4)).expect("held");
    // None of these is heard of, nor will be: history from before the last of them is gone.
    let mut lost = vec![world.put("a/changed", "k=v").await, world.put("a/changed", "k=v").await];
    lost.extend([world.delete("a/deleted").await, world.delete("b/deleted").await]);
    lost.extend([world.put("a/short", "").await, world.delete("a/short").await]);
    let other = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"made-anew","namespace":"a","uid":"other","labels":{"k":"v"}}}"#;
    let other = Op::Put { value: other.into(), ttl: None };
    lost.extend([world.delete("a/made-anew").await, world.commit("a/made-anew", other).await]);
    lost.push(world.put("c/new", "").await);
    short.oldest.store(14, Ordering::Relaxed);
    log.append(lost.iter().map(|revision| change("a/lost", *revision)).collect::<Vec<_>>(), 0);
    watchers[0].ready().await;
    let mut told = Vec::new();
    for watcher in &mut watchers {
        told.push(world.drain(watcher).await);
    }
    let expired = "EXPIRED 6<14";
    assert_eq!(told, ["EXPIRED 6<8", expired, "", "EXPIRED 6<8", expired]);
    let early = world.drain(&mut early).await;
    assert_eq!(early, "+deleted@5 +made-anew@6 EXPIRED 4<8", "what was known before comes first");
    let end = "15: a/changed@8 a/kept@2 a/made-anew@14 c/new@15";
    assert_eq!(world.state(None).await, end);
    // What is within the hole was seen by nobody here: who saw it elsewhere lists again. Its ends are known.
    for revision in 6..=14 {
        let watched = world.cacher.watch(everything(), Revision::from_log(revision));
        let heard = match watched {
            Ok(mut watcher) => world.drain(&mut watcher).await,
            Err(error) => error.to_string(),
        };
        let expected = match revision {
            6 => told[0].clone(),
            14 => "+new@15".to_string(),
            hole => format!("too old resource version: {hole} (14)"),
        };
        assert_eq!(heard, expected, "after {revision}");
    }
    let known = "6: a/changed@3 a/deleted@4 a/kept@2 a/made-anew@6 b/deleted@5";
    assert_eq!(world.state(Some(after)).await, known);
    assert_eq!(world.state(Some(Revision::from_log(10))).await, "too old resource version: 10 (14)");
    world.put("a/kept", "k=v").await;
    check(expect!["~kept@16"], &world.drain(&mut watchers[2]).await);
    let counters = world.cacher.counters();
    assert_eq!(counters.initializations.load(Ordering::Relaxed), 1);
    assert_eq!(counters.holes_bridged.load(Ordering::Relaxed), 1);
    assert_eq!(counters.terminated_watchers.load(Ordering::Relaxed), 6, "those that saw a difference");
}

#[tokio::test]
async fn a_consistent_read_that_cannot_be_proved_is_stale_and_the_next_ones_fail_at_once() {
    let (clock, _hand) = Clock::manual(1_000_003);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let (short, _log) = Short::new(engine);
    let cacher = World::start(short.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    // Longer than a machine stands still, and than what is at once takes there.
    let wait = Duration::from_secs(2);
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
async fn a_bookmark_that_is_not_proved_in_time_says_what_is_known_and_fails_no_read() {
    let (clock, _hand) = Clock::manual(1_000_003);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let (short, _log) = Short::new(engine);
    let cacher = World::start(short.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let mut watcher = cacher.watch(everything(), Revision::FIRST).expect("held");
    // One whose time is over does not ask; the other one asks, and does not wait for long.
    for wait in [Duration::ZERO, Duration::from_millis(500)] {
        short.current.store(9, Ordering::Relaxed);
        let began = clock.now();
        assert_eq!(watcher.bookmark(began + wait).await, Some(Revision::FIRST));
        assert!(clock.now() - began < crate::limits::FRESH_WAIT);
        short.current.store(0, Ordering::Relaxed);
        let read = cacher.fresh(clock.now() + crate::limits::FRESH_WAIT).await;
        assert_eq!(read.map(|snapshot| snapshot.revision()).ok(), Some(Revision::FIRST), "after {wait:?}");
    }
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
