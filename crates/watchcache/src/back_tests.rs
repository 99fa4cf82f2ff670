//! A store that comes back at an older revision (kubernetes#107133): noticed, and everybody is told to list
//! again, once.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use expect_test::expect;
use forebay_apimachinery::Revision;
use forebay_backend::{Backend, Backlog, BoxFuture, Change, Feed, FeedError, Layer};
use forebay_embedded::Engine;
use forebay_revlog::{Limits, Writer};
use forebay_rt::{Clock, Tasks};

use crate::tests::{PREFIX, World, check, everything};
use crate::{Interest, Reach};

/// A store that can be put back to what another one holds.
struct Restored {
    engine: Mutex<Arc<Engine>>,
    // The first feed, if it is not the engine's.
    first: Mutex<Option<Feed>>,
}

impl Restored {
    fn new(engine: &Arc<Engine>, first: Option<Feed>) -> Arc<Restored> {
        Arc::new(Restored { engine: Mutex::new(engine.clone()), first: Mutex::new(first) })
    }

    fn engine(&self) -> Arc<Engine> {
        self.engine.lock().expect("not poisoned").clone()
    }
}

impl Layer for Restored {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine()
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        let first = self.first.lock().expect("not poisoned").take();
        Box::pin(async move {
            match first {
                Some(first) => Ok(first),
                None => Backend::feed(&*self.engine(), prefix, after).await,
            }
        })
    }
}

fn at(revision: u64) -> Revision {
    Revision::from_log(revision)
}

#[tokio::test(start_paused = true)]
async fn a_store_that_went_back_is_noticed_and_everybody_lists_again_once() {
    let (clock, _hand) = Clock::manual(1_000_000);
    let (engine, backup, tasks) = (World::engine(&clock), World::engine(&clock), Tasks::new());
    let store = Restored::new(&engine, None);
    let cacher = World::start(store.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    for number in 0..9 {
        world.put(&format!("a/x{number}"), "").await;
    }
    let shown = world.cacher.fresh(world.soon()).await.expect("fresh");
    world.cacher.remember(shown.clone());
    let one = Interest::all(Reach::One(format!("{PREFIX}a/x0").into()));
    let watched = [(everything(), 10), (everything(), 4), (one, 10), (everything(), 12)];
    let mut watchers =
        watched.map(|(interest, after)| world.cacher.watch(interest, at(after)).expect("held"));
    // The backup is of revision 4: three pods.
    let restored = World { engine: backup.clone(), ..world };
    for number in 0..3 {
        restored.put(&format!("a/x{number}"), "k=restored").await;
    }
    let lost = std::mem::replace(&mut *store.engine.lock().expect("not poisoned"), backup);
    assert!(restored.cacher.fresh(restored.soon()).await.is_err(), "not proved to be current");
    for watcher in &mut watchers {
        watcher.ready().await;
    }
    let world = restored;
    while world.cacher.snapshot().is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.cacher.counters().went_back.load(Ordering::Relaxed), 1);
    // In the stream: every informer lists again.
    for watcher in &mut watchers {
        assert!(matches!(watcher.try_next(), Some(crate::WatchStep::Expired { .. })));
    }
    world.clock.sleep(crate::limits::STALE_HOLD).await;
    check(expect!["4: a/x0@2 a/x1@3 a/x2@4"], &world.state(None).await);
    // Those who come back with what they had, from before and from the future that never was.
    for revision in [2, 3, 5, 9, 10] {
        let refused = world.cacher.watch(everything(), at(revision)).err().map(|error| error.to_string());
        assert_eq!(refused, Some(format!("too old resource version: {revision} (4)")));
        let began = world.clock.now();
        let listed = world.cacher.at_least(at(revision), world.soon()).await;
        assert_eq!(listed.is_ok(), revision <= 4, "{revision}");
        assert_eq!(world.clock.now(), began, "nobody waits for what never was");
        assert!(world.state(Some(at(revision))).await.starts_with("too old resource version"));
    }
    // A watch-list from a snapshot of before begins with what there is.
    let mut watcher = world.cacher.watch_list(everything(), shown).expect("ready");
    check(expect!["+x0@2 +x1@3 +x2@4 END 4"], &world.drain(&mut watcher).await);
    // Who has listed again goes on, though its revisions were used before.
    let mut watcher = world.cacher.watch(everything(), at(4)).expect("current");
    for number in 3..10 {
        world.put(&format!("a/y{number}"), "").await;
        let read = world.cacher.fresh(world.soon()).await.expect("a consistent read is of now");
        assert_eq!(read.revision(), at(number + 2));
    }
    check(expect!["+y3@5 +y4@6 +y5@7 +y6@8 +y7@9 +y8@10 +y9@11"], &world.drain(&mut watcher).await);
    check(
        expect!["10: a/x0@2 a/x1@3 a/x2@4 a/y3@5 a/y4@6 a/y5@7 a/y6@8 a/y7@9 a/y8@10"],
        &world.state(Some(at(10))).await,
    );
    let mut future = world.cacher.watch(everything(), at(12)).expect("may still come");
    check(expect![""], &world.drain(&mut future).await);
    assert_eq!(world.cacher.counters().went_back.load(Ordering::Relaxed), 1);
    drop(lost);
}

/// Pages of history, the last one first.
struct Pages(Vec<Vec<Change>>);

impl Backlog for Pages {
    fn page(&mut self) -> Result<Vec<Change>, FeedError> {
        Ok(self.0.pop().unwrap_or_default())
    }
}

#[tokio::test]
async fn a_feed_that_goes_below_what_it_told_is_of_a_store_that_went_back() {
    let (clock, _hand) = Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let live = Writer::new(9, Limits { items_max: 1, bytes_max: 1, age_ms_max: 1 });
    let told = |revision| {
        let value =
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"lost","namespace":"a","uid":"u"}}"#;
        vec![Change {
            key: format!("{PREFIX}a/lost").into(),
            revision: at(revision),
            value: Some(value.into()),
        }]
    };
    let pages = Pages(vec![told(4), told(5)]);
    let feed = Feed::new(Some(Box::new(pages)), live.log().cursor(9).expect("held"));
    let store = Restored::new(&engine, Some(feed));
    let mut world = World { cacher: World::start(engine.clone(), &clock, &tasks), engine, tasks, clock };
    for number in 0..6 {
        world.put(&format!("a/x{number}"), "").await;
    }
    world.cacher = World::start(store, &world.clock, &world.tasks);
    world.cacher.wait_ready().await;
    check(expect!["7: a/x0@2 a/x1@3 a/x2@4 a/x3@5 a/x4@6 a/x5@7"], &world.state(None).await);
    assert_eq!(world.cacher.counters().went_back.load(Ordering::Relaxed), 1);
}
