//! What is loose stays within its room, at a start and under load, and nobody can tell.
//!
//! Time stands still in most of these: nothing becomes quiet, so that whatever is sealed is sealed for want
//! of room.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, Expect, Op, Txn, TxnResponse};
use forebay_embedded::Engine;
use forebay_embedded::limits::{HISTORY_MS, MARK_EVERY_MS};
use forebay_object::{Form, Layout, Object, Scope};
use forebay_rt::{Clock, Duration, ManualClock, Random, Tasks};

use crate::early_readers::EarlyReaders;
use crate::limits::{HASTE_BYTES_MIN, PACE, Pace};
use crate::tests::{World, noise};
use crate::{Cacher, History, Interest, Reach, Resource, Room, WatchStep};

const MIB: usize = 1 << 20;

/// Far less than what goes through it.
const ROOM: usize = 2 * MIB;

/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

const PODS: usize = 1_500;
const POD_BYTES: usize = 4 << 10;

struct Lab {
    engine: Arc<Engine>,
    clock: Clock,
    hand: ManualClock,
    tasks: Tasks,
    room: Arc<Room>,
    random: Random,
}

impl Lab {
    fn new() -> Lab {
        let (clock, hand) = Clock::manual(1_000_000);
        let (engine, tasks) = (World::engine(&clock), Tasks::new());
        Lab {
            engine,
            clock,
            hand,
            tasks,
            room: Arc::new(Room::waited_for(ROOM, PATIENCE)),
            random: Random::seeded(11),
        }
    }

    /// A cache of `/registry/<name>/`.
    fn cache(&self, name: &str) -> Cacher {
        self.cache_in(name, &self.room, PACE)
    }

    fn cache_in(&self, name: &str, room: &Arc<Room>, pace: Pace) -> Cacher {
        let prefix = format!("/registry/{name}/");
        let layout = Layout {
            prefix_len: prefix.len(),
            scope: Scope::Namespaced,
            form: Form::Typed,
            fields: Vec::new(),
        };
        let resource = Resource {
            name: name.into(),
            prefix: Key::from(prefix),
            layout,
            indexed: Vec::new(),
            pace,
            history: History::Own,
            room: room.clone(),
            early: Arc::new(EarlyReaders::admitted()),
        };
        Cacher::start(resource, self.engine.clone(), self.clock.clone(), &self.tasks)
    }

    /// An object of about `bytes`, an eighth of them its own.
    fn value(&self, name: &str, round: usize, bytes: usize) -> Bytes {
        self.value_of(name, round, &"what all of them say, again and again; ".repeat(bytes / 45), bytes / 8)
    }

    fn value_of(&self, name: &str, round: usize, note: &str, noise_bytes: usize) -> Bytes {
        let noise = noise(&self.random, noise_bytes);
        let value = format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"a","uid":"u"}},"spec":{{"note":"{note}","noise":"{noise}"}},"status":{{"round":{round}}}}}"#
        );
        value.into()
    }

    /// Writes objects `0..count`, many at once.
    async fn put_all(&self, resource: &str, count: usize, value: impl Fn(usize) -> Bytes) {
        for from in (0..count).step_by(250) {
            let puts: Vec<_> = (from..(from + 250).min(count))
                .map(|number| {
                    let key = Key::from(format!("/registry/{resource}/a/pod-{number:05}"));
                    tokio::spawn(put(self.engine.clone(), key, value(number)))
                })
                .collect();
            for put in puts {
                put.await.expect("no panic");
            }
        }
    }

    async fn put_pods(&self, round: usize) {
        self.put_all("pods", PODS, |number| self.value(&format!("pod-{number:05}"), round, POD_BYTES)).await;
    }

    /// The store forgets its history.
    async fn history_is_over(&self) {
        self.hand.advance_ms(MARK_EVERY_MS);
        self.engine.settle().await;
        self.hand.advance_ms(HISTORY_MS);
        self.engine.settle().await;
    }

    /// Waits until nothing is loose: all room is there for who asks for it, and is given back.
    async fn all_is_sealed(&self) {
        drop(self.room.take(ROOM).await.expect("never closed"));
    }
}

async fn put(engine: Arc<Engine>, key: Key, value: Bytes) {
    let current = engine.get(&key).await.expect("reads");
    let expect = current.map_or(Expect::Absent, |current| Expect::At(current.revision));
    let committed = engine.commit(Txn { key, expect, op: Op::Put { value, ttl: None } }).await;
    assert!(matches!(committed, Ok(TxnResponse::Committed(_))), "{committed:?}");
}

fn everything(cacher: &Cacher) -> Interest {
    Interest::all(Reach::Below(cacher.resource().prefix.clone()))
}

async fn caught_up(cacher: &Cacher, lab: &Lab) -> Arc<crate::Snapshot> {
    cacher.fresh(lab.clock.now() + PATIENCE).await.expect("fresh")
}

/// The most that was loose, and how often there was no room at all.
fn most(cacher: &Cacher) -> (usize, u64) {
    let read = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    (read(&cacher.counters().loose_bytes_max) as usize, read(&cacher.counters().rooms_overdrawn))
}

/// Every object that state and window hold, once.
fn held(cacher: &Cacher) -> Vec<Arc<Object>> {
    let snapshot = cacher.snapshot().expect("ready");
    let (mut seen, mut held) = (HashSet::new(), Vec::new());
    let (_, window) = cacher.ready().expect("ready");
    let events = window.log.undo(window.log.oldest(), snapshot.revision().get()).expect("held");
    let of_events = events.iter().flat_map(|event| event.previous.iter().chain(&event.current));
    for object in snapshot.range(&everything(cacher).reach, None).chain(of_events) {
        if seen.insert(Arc::as_ptr(object)) {
            held.push(object.clone());
        }
    }
    held
}

/// Waits for what the caches' tasks and the threads that seal will have done soon.
async fn until(condition: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if condition() {
            return;
        }
        forebay_rt::promptly(std::thread::yield_now).finished().await;
    }
    panic!("it does not come to that");
}

fn loose(objects: &[Arc<Object>]) -> usize {
    objects.iter().map(|object| object.loose_bytes()).sum()
}

/// Everything that a watcher from the beginning on is sent.
fn told(cacher: &Cacher, after: Revision) -> Vec<(String, Vec<u8>)> {
    let mut watcher = cacher.watch(everything(cacher), after).expect("held");
    let mut out = Vec::new();
    while let Some(step) = watcher.try_next() {
        let WatchStep::Event { kind, object, revision } = step else { panic!("{step:?}") };
        out.push((format!("{kind:?} {} @{revision}", object.name()), object.body().to_vec()));
    }
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_holds_no_more_in_plain_form_than_there_is_room_for() {
    let lab = Lab::new();
    // A state whose history is over, and then a history with more than it.
    lab.put_pods(0).await;
    lab.history_is_over().await;
    let start = lab.engine.barrier().await.expect("current");
    for round in 1..3 {
        lab.put_pods(round).await;
    }
    let large = Arc::new(Room::new(1 << 30));
    // All of history is read before it is ready.
    let plain = lab.cache_in("pods", &large, Pace { recent: u64::MAX, ..PACE });
    plain.wait_ready().await;
    assert!(loose(&held(&plain)) > 4 * ROOM, "without that bound");

    let cacher = lab.cache("pods");
    cacher.wait_ready().await;
    cacher.reach_back(start).await.expect("there is history");
    let (most, overdrawn) = most(&cacher);
    assert!((ROOM / 4..=ROOM).contains(&most) && overdrawn == 0, "{most} {overdrawn}");
    assert!(loose(&held(&cacher)) <= ROOM);
    assert_eq!(told(&cacher, start), told(&plain, start));
    let bodies = |cacher: &Cacher| -> Vec<Vec<u8>> {
        let snapshot = cacher.snapshot().expect("ready");
        snapshot.range(&everything(cacher).reach, None).map(|object| object.body().to_vec()).collect()
    };
    assert_eq!(bodies(&cacher), bodies(&plain));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_at_full_speed_holds_no_more_in_plain_form_than_there_is_room_for() {
    let lab = Lab::new();
    let cacher = lab.cache("pods");
    cacher.wait_ready().await;
    let mut versions: Vec<Weak<Object>> = Vec::new();
    for round in 0..3 {
        lab.put_pods(round).await;
        let now = caught_up(&cacher, &lab).await;
        assert_eq!(now.len(), PODS);
        versions.extend(now.range(&everything(&cacher).reach, None).map(Arc::downgrade));
    }
    let (most, overdrawn) = most(&cacher);
    assert!((ROOM / 4..=ROOM).contains(&most) && overdrawn == 0, "{most} {overdrawn}");
    lab.all_is_sealed().await;
    // What was sealed last may not be what is shown yet, and a job may still look at the state before it.
    until(|| loose(&held(&cacher)) == 0).await;
    let is_plain = |object: Arc<Object>| object.loose_bytes() > 0;
    until(|| !versions.iter().filter_map(Weak::upgrade).any(is_plain)).await;
    assert_eq!(told(&cacher, Revision::FIRST).len(), 3 * PODS);
    assert_eq!(lab.room.taken_bytes(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_sealed_takes_no_room_for_long() {
    let lab = Lab::new();
    let cacher = lab.cache("secrets");
    cacher.wait_ready().await;
    let mut random = Vec::new();
    for number in 0..60 {
        random.push(lab.value_of(&format!("pod-{number:05}"), 0, "", 100 << 10));
    }
    lab.put_all("secrets", random.len(), |number| random[number].clone()).await;
    assert_eq!(caught_up(&cacher, &lab).await.len(), random.len());
    let (most, overdrawn) = most(&cacher);
    assert!((ROOM / 4..=ROOM).contains(&most) && overdrawn == 0, "{most} {overdrawn}");
}

#[tokio::test]
async fn a_quiet_cache_makes_room_for_another() {
    let lab = Lab::new();
    let (quiet, busy) = (lab.cache("pods"), lab.cache("configmaps"));
    quiet.wait_ready().await;
    busy.wait_ready().await;
    let few = HASTE_BYTES_MIN / 2 / POD_BYTES;
    lab.put_all("pods", few, |number| lab.value(&format!("pod-{number:05}"), 0, POD_BYTES)).await;
    caught_up(&quiet, &lab).await;
    let before = loose(&held(&quiet));
    assert!(before > few * POD_BYTES / 2, "{before}: there is no haste");
    // One that leaves no room for the others.
    let large = lab.value("pod-00000", 0, ROOM - before / 2);
    lab.put_all("configmaps", 1, |_| large.clone()).await;
    assert_eq!(caught_up(&busy, &lab).await.len(), 1);
    assert_eq!((most(&quiet).1, most(&busy).1), (0, 0), "nobody went without");
    assert!(most(&busy).0 > ROOM - before, "there was no room beside it");
    until(|| loose(&held(&quiet)) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_for_room() {
    let lab = Lab::new();
    let cacher = lab.cache("pods");
    cacher.wait_ready().await;
    let _held = lab.room.take(ROOM).await.expect("free");
    lab.put_all("pods", 1, |number| lab.value(&format!("pod-{number:05}"), 0, POD_BYTES)).await;
    cacher.at_least(Revision::from_log(2), lab.clock.now() + 2 * PATIENCE).await.expect("reached");
    assert_eq!(most(&cacher).1, 1);
}
