//! A cache is ready before it has read its history; who comes back from there waits for it, and is told all
//! or that it is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_apimachinery::Revision;
use forebay_backend::{Backend, BoxFuture, Feed, FeedError, Layer};
use forebay_embedded::Engine;
use forebay_rt::{Clock, Tasks};
use tokio::sync::watch;

use crate::early_readers::EarlyReaders;
use crate::limits::{EARLY_WAIT, PACE, Pace};
use crate::tests::{World, everything};
use crate::{Cacher, WatchStep};

/// Revisions that are taken in at once.
const RECENT: u64 = 5;

/// What becomes of feeds from before what is recent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum History {
    Held,
    There,
    Gone,
}

/// The engine, whose older history is there when the test says so.
struct Slow {
    engine: Arc<Engine>,
    history: watch::Receiver<History>,
    // Feeds from before what is recent that were asked for.
    asked: Arc<AtomicUsize>,
}

impl Slow {
    async fn older(&self, after: Revision) -> Result<(), FeedError> {
        let current = self.engine.barrier().await?;
        if after.get() + RECENT >= current.get() {
            return Ok(());
        }
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut history = self.history.clone();
        let told = history.wait_for(|history| *history != History::Held).await;
        match told.map(|history| *history) {
            Ok(History::There) => Ok(()),
            _ => Err(FeedError::Compacted { oldest: current }),
        }
    }
}

impl Layer for Slow {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine.clone()
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        Box::pin(async move {
            self.older(after).await?;
            Backend::feed(&*self.engine, prefix, after).await
        })
    }
}

/// A store with 30 revisions, and a cache of it that takes in the last few; its history is held back.
async fn world() -> (World, watch::Sender<History>) {
    let (world, told, _asked) = world_with(Arc::new(EarlyReaders::admitted())).await;
    (world, told)
}

async fn world_with(early: Arc<EarlyReaders>) -> (World, watch::Sender<History>, Arc<AtomicUsize>) {
    let clock = Clock::system();
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let (told, history) = watch::channel(History::Held);
    let asked: Arc<AtomicUsize> = Arc::default();
    let slow = Arc::new(Slow { engine: engine.clone(), history, asked: asked.clone() });
    let cacher = World::start_paced(engine.clone(), &clock, &tasks, PACE);
    let mut world = World { engine, cacher, tasks, clock };
    for number in 0..29 {
        world.put(&format!("a/p{}", number % 4), &format!("round=r{number}")).await;
    }
    let pace = Pace { recent: RECENT, ..PACE };
    let lives = (&world.clock, &world.tasks);
    world.cacher = World::start_as(slow, lives, pace, crate::History::Own, early);
    world.cacher.wait_ready().await;
    (world, told, asked)
}

fn revisions(cacher: &Cacher, after: u64) -> Result<Vec<u64>, String> {
    let mut watcher =
        cacher.watch(everything(), Revision::from_log(after)).map_err(|error| error.to_string())?;
    let mut told = Vec::new();
    while let Some(step) = watcher.try_next() {
        let WatchStep::Event { revision, .. } = step else { panic!("{step:?}") };
        told.push(revision.get());
    }
    Ok(told)
}

#[tokio::test]
async fn a_cache_serves_before_its_history_is_read_and_who_comes_from_there_waits_for_it() {
    let (world, told) = world().await;
    let cacher = &world.cacher;
    assert_eq!(world.state(None).await, "30: a/p0@30 a/p1@27 a/p2@28 a/p3@29");
    cacher.reach_back(Revision::from_log(25)).await.expect("it is there");
    assert_eq!(revisions(cacher, 25).expect("held"), [26, 27, 28, 29, 30]);
    let mut waits = std::pin::pin!(cacher.reach_back(Revision::from_log(3)));
    tokio::select! {
        biased;
        reached = &mut waits => panic!("{reached:?}"),
        () = std::future::ready(()) => {}
    }
    // What happens meanwhile follows what was before.
    world.put("a/p1", "round=last").await;
    world.delete("a/p2").await;
    world.cacher.fresh(world.soon()).await.expect("fresh");
    told.send_replace(History::There);
    waits.await.expect("there is history");
    assert_eq!(revisions(cacher, 3).expect("held"), (4..=32).collect::<Vec<_>>());
    assert_eq!(world.state(Some(Revision::from_log(4))).await, "4: a/p0@2 a/p1@3 a/p2@4");
    assert_eq!(world.state(Some(Revision::from_log(24))).await, "24: a/p0@22 a/p1@23 a/p2@24 a/p3@21");
}

#[tokio::test]
async fn history_that_is_gone_meanwhile_is_waited_for_by_nobody() {
    let (world, told) = world().await;
    let cacher = &world.cacher;
    let waits = cacher.reach_back(Revision::from_log(3));
    told.send_replace(History::Gone);
    waits.await.expect("it is known");
    assert_eq!(revisions(cacher, 3).expect_err("gone"), "too old resource version: 3 (25)");
    assert_eq!(cacher.counters().windows_begun_late.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(revisions(cacher, 25).expect("held"), [26, 27, 28, 29, 30]);
}

#[tokio::test]
async fn no_history_is_read_before_the_server_serves() {
    let early = Arc::new(EarlyReaders::held_back());
    let (world, told, asked) = world_with(early.clone()).await;
    told.send_replace(History::There);
    // Others get on, whose questions to the store come behind those of a reader.
    for round in 0..5 {
        world.put("a/p1", &format!("round=late{round}")).await;
        world.cacher.fresh(world.soon()).await.expect("fresh");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    early.let_in();
    world.cacher.reach_back(Revision::from_log(3)).await.expect("there is history");
    assert_eq!(revisions(&world.cacher, 3).expect("held"), (4..=35).collect::<Vec<_>>());
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_for_history() {
    let (world, _told) = world().await;
    let begun = world.clock.now();
    let refused = world.cacher.reach_back(Revision::from_log(3)).await.expect_err("it does not come");
    assert_eq!(refused.to_string(), "storage is (re)initializing");
    assert!(world.clock.now() - begun >= EARLY_WAIT);
}
