//! The cache over the embedded engine in memory: text in, text out.

use std::sync::Arc;

use expect_test::{Expect, expect};
use forebay_apimachinery::selector::LabelSelector;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, Expect as Wanted, Op, Txn, TxnResponse};
use forebay_embedded::{Engine, Options};
use forebay_object::{Form, Layout, Scope};
use forebay_rt::{Clock, Duration, Random, Tasks};

use crate::early_readers::EarlyReaders;
use crate::limits::{self, PACE, Pace};
use crate::{Cacher, EventKind, History, Interest, Reach, ReadError, Resource, Room, WatchStep, Watcher};

pub(crate) const PREFIX: &str = "/registry/pods/";

pub(crate) struct World {
    pub(crate) engine: Arc<Engine>,
    pub(crate) cacher: Cacher,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Clock,
}

impl World {
    pub(crate) async fn new() -> World {
        World::paced(PACE).await
    }

    pub(crate) async fn paced(pace: Pace) -> World {
        let (clock, _hand) = Clock::manual(1_000_000);
        let engine = World::engine(&clock);
        let tasks = Tasks::new();
        let cacher = World::start_paced(engine.clone(), &clock, &tasks, pace);
        cacher.wait_ready().await;
        World { engine, cacher, tasks, clock }
    }

    pub(crate) fn engine(clock: &Clock) -> Arc<Engine> {
        Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens")
    }

    async fn cacher(engine: &Arc<Engine>, clock: &Clock, tasks: &Tasks) -> Cacher {
        let cacher = World::start(engine.clone(), clock, tasks);
        cacher.wait_ready().await;
        cacher
    }

    pub(crate) fn start(backend: Arc<dyn Backend>, clock: &Clock, tasks: &Tasks) -> Cacher {
        World::start_paced(backend, clock, tasks, PACE)
    }

    pub(crate) fn start_paced(backend: Arc<dyn Backend>, clock: &Clock, tasks: &Tasks, pace: Pace) -> Cacher {
        let early = Arc::new(EarlyReaders::admitted());
        World::start_as(backend, (clock, tasks), pace, History::Own, early)
    }

    pub(crate) fn start_checked(
        backend: Arc<dyn Backend>,
        clock: &Clock,
        tasks: &Tasks,
        check_every: Duration,
    ) -> Cacher {
        let early = Arc::new(EarlyReaders::admitted());
        World::start_as(backend, (clock, tasks), PACE, History::Shared { check_every }, early)
    }

    pub(crate) fn start_as(
        backend: Arc<dyn Backend>,
        (clock, tasks): (&Clock, &Tasks),
        pace: Pace,
        history: History,
        early: Arc<EarlyReaders>,
    ) -> Cacher {
        Cacher::start(World::pods(pace, history, early), backend, clock.clone(), tasks)
    }

    pub(crate) fn pods(pace: Pace, history: History, early: Arc<EarlyReaders>) -> Resource {
        let layout = Layout {
            prefix_len: PREFIX.len(),
            scope: Scope::Namespaced,
            form: Form::Typed,
            fields: vec![vec!["spec".into(), "nodeName".into()]],
        };
        let (name, prefix, indexed) = ("pods".into(), PREFIX.into(), vec![0]);
        let room = Arc::new(Room::new(limits::LOOSE_BYTES_MAX));
        Resource { name, prefix, layout, indexed, pace, history, room, early }
    }

    pub(crate) async fn put(&self, place: &str, labels: &str) -> Revision {
        self.put_on(place, labels, "").await
    }

    /// A pod on a node.
    pub(crate) async fn put_on(&self, place: &str, labels: &str, node: &str) -> Revision {
        let (namespace, name) = place.split_once('/').expect("namespace/name");
        let labels = labels
            .split_once('=')
            .map_or(String::new(), |(key, value)| format!(r#","labels":{{"{key}":"{value}"}}"#));
        let node = if node.is_empty() { String::new() } else { format!(r#""nodeName":"{node}""#) };
        let value = format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"u"{labels}}},"spec":{{{node}}}}}"#
        );
        self.commit(place, Op::Put { value: value.into(), ttl: None }).await
    }

    pub(crate) async fn delete(&self, place: &str) -> Revision {
        self.commit(place, Op::Delete).await
    }

    pub(crate) async fn commit(&self, place: &str, op: Op) -> Revision {
        let key = Key::from(format!("{PREFIX}{place}"));
        let current = self.engine.get(&key).await.expect("reads");
        let expect = current.map_or(Wanted::Absent, |current| Wanted::At(current.revision));
        match self.engine.commit(Txn { key, expect, op }).await.expect("commits") {
            TxnResponse::Committed(revision) => revision,
            TxnResponse::Conflict(found) => panic!("{found:?}"),
        }
    }

    pub(crate) fn soon(&self) -> forebay_rt::Instant {
        self.clock.now() + Duration::from_secs(3)
    }

    pub(crate) async fn state(&self, at: Option<Revision>) -> String {
        let snapshot = match at {
            None => self.cacher.fresh(self.soon()).await,
            Some(revision) => self.cacher.exact(revision, self.soon()).await,
        };
        match snapshot {
            Ok(snapshot) => {
                let all = Reach::Below(PREFIX.into());
                let shown = |object: &Arc<forebay_object::Object>| {
                    format!("{}/{}@{}", object.namespace(), object.name(), object.revision())
                };
                let items: Vec<String> = snapshot.range(&all, None).map(shown).collect();
                format!("{}: {}", snapshot.revision(), items.join(" "))
            }
            Err(error) => error.to_string(),
        }
    }

    /// What a watcher has now, once everything committed so far has reached the cache.
    pub(crate) async fn drain(&self, watcher: &mut Watcher) -> String {
        self.cacher.fresh(self.soon()).await.expect("fresh");
        let mut out = Vec::new();
        while let Some(step) = watcher.try_next() {
            out.push(match step {
                WatchStep::Event { kind, object, revision } => {
                    let kind = match kind {
                        EventKind::Added => "+",
                        EventKind::Modified => "~",
                        EventKind::Deleted => "-",
                    };
                    format!("{kind}{}@{revision}", object.name())
                }
                WatchStep::InitialEventsEnd(revision) => format!("END {revision}"),
                WatchStep::Expired { asked, oldest } => {
                    out.push(format!("EXPIRED {asked}<{oldest}"));
                    break;
                }
                WatchStep::Undecrypted { key, why } => {
                    out.push(format!("UNDECRYPTED {}: {why}", &key.as_str()[PREFIX.len()..]));
                    break;
                }
                WatchStep::Closed => {
                    out.push("CLOSED".to_string());
                    break;
                }
            });
        }
        out.join(" ")
    }
}

/// Text that deflate can do nothing with.
pub(crate) fn noise(random: &Random, bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = |bits: u64| (0..8).map(move |at| char::from(LETTERS[(bits >> (6 * at)) as usize % 64]));
    (0..bytes / 8).flat_map(|_| letters(random.below(1 << 48))).collect()
}

pub(crate) fn labelled(selector: &str) -> Interest {
    let labels = Arc::new(LabelSelector::parse(selector).expect("a selector"));
    Interest { labels, ..Interest::all(Reach::Below(PREFIX.into())) }
}

pub(crate) fn everything() -> Interest {
    Interest::all(Reach::Below(PREFIX.into()))
}

pub(crate) fn check(expected: Expect, actual: &str) {
    expected.assert_eq(actual);
}

#[tokio::test]
async fn a_consistent_read_sees_every_acknowledged_write() {
    let world = World::new().await;
    for number in 0..100 {
        let revision = world.put(&format!("a/{number}"), "").await;
        let snapshot = world.cacher.fresh(world.soon()).await.expect("fresh");
        assert!(snapshot.revision() >= revision);
        assert_eq!(snapshot.len(), number + 1);
    }
}

#[tokio::test]
async fn past_states_are_made_by_undoing() {
    let world = World::new().await;
    world.put("a/x", "").await;
    world.put("b/y", "").await;
    world.put("a/x", "k=v").await;
    world.delete("b/y").await;
    check(expect!["5: a/x@4"], &world.state(None).await);
    check(expect!["4: a/x@4 b/y@3"], &world.state(Revision::new(4)).await);
    check(expect!["3: a/x@2 b/y@3"], &world.state(Revision::new(3)).await);
    check(expect!["2: a/x@2"], &world.state(Revision::new(2)).await);
    check(expect!["1: "], &world.state(Revision::new(1)).await);
}

#[tokio::test]
async fn a_past_state_from_long_ago_is_made_in_parts_and_once() {
    let world = World::new().await;
    for _ in 0..limits::UNDO_BATCH + 2 {
        world.put("a/x", "").await;
    }
    world.cacher.fresh(world.soon()).await.expect("fresh");
    let early = Revision::from_log(2);
    let mut first = Box::pin(world.cacher.exact(early, world.soon()));
    tokio::select! { biased; _ = &mut first => panic!("in one go"), () = std::future::ready(()) => {} }
    let (first, second) = tokio::join!(first, world.cacher.exact(early, world.soon()));
    let [first, second] = [first, second].map(|read| read.expect("held"));
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!((first.revision(), first.len()), (early, 1));
    // The second is made of the first.
    check(expect!["900: a/x@900"], &world.state(Revision::new(900)).await);
    check(expect!["800: a/x@800"], &world.state(Revision::new(800)).await);
}

#[tokio::test(start_paused = true)]
async fn a_future_revision_is_too_large_after_three_seconds() {
    let world = World::new().await;
    world.put("a/x", "").await;
    let began = world.clock.now();
    check(expect!["Too large resource version: 9, current: 2"], &world.state(Revision::new(9)).await);
    assert_eq!(world.clock.now() - began, Duration::from_secs(3));
}

#[tokio::test]
async fn a_selector_turns_changes_into_added_and_deleted() {
    let world = World::new().await;
    let start = world.put("a/x", "app=web").await;
    let mut watcher = world.cacher.watch(labelled("app=web"), start).expect("held");
    world.put("a/x", "app=db").await;
    world.put("a/x", "app=web").await;
    world.put("a/y", "app=db").await;
    world.put("a/x", "app=web").await;
    world.delete("a/y").await;
    world.delete("a/x").await;
    check(expect!["-x@3 +x@4 ~x@6 -x@8"], &world.drain(&mut watcher).await);
}

#[tokio::test]
async fn a_watch_list_gives_the_state_its_end_and_then_events() {
    let world = World::new().await;
    for name in ["b", "a", "c"] {
        world.put(&format!("n/{name}"), "app=web").await;
    }
    let snapshot = world.cacher.fresh(world.soon()).await.expect("fresh");
    world.put("n/d", "app=web").await;
    let mut watcher = world.cacher.watch_list(labelled("app=web"), snapshot).expect("held");
    check(expect!["+a@3 +b@2 +c@4 END 4 +d@5"], &world.drain(&mut watcher).await);
}

#[tokio::test]
async fn a_namespace_is_not_a_prefix_of_another() {
    let world = World::new().await;
    world.put("a/x", "").await;
    world.put("ab/x", "").await;
    let snapshot = world.cacher.fresh(world.soon()).await.expect("fresh");
    let reach = Reach::Below(format!("{PREFIX}a/").into());
    assert_eq!(snapshot.range(&reach, None).count(), 1);
    let one = Reach::One(format!("{PREFIX}a/x").into());
    assert_eq!(snapshot.range(&one, None).count(), 1);
    assert_eq!(snapshot.range(&Reach::One(format!("{PREFIX}a/").into()), None).count(), 0);
}

#[tokio::test]
async fn a_bookmark_covers_everything_sent_and_moves_with_other_resources() {
    let world = World::new().await;
    let start = world.put("a/x", "").await;
    let mut watcher = world.cacher.watch(everything(), start).expect("held");
    let other = Key::from("/registry/configmaps/a/x");
    let txn = Txn { key: other, expect: Wanted::Absent, op: Op::Put { value: "{}".into(), ttl: None } };
    let TxnResponse::Committed(elsewhere) = world.engine.commit(txn).await.expect("commits") else {
        panic!("conflict")
    };
    assert_eq!(watcher.bookmark(world.soon()).await, Some(elsewhere));
    world.put("a/y", "").await;
    assert_eq!(watcher.bookmark(world.soon()).await, None, "an event comes first");
    check(expect!["+y@4"], &world.drain(&mut watcher).await);
    assert_eq!(watcher.bookmark(world.soon()).await, Revision::new(4));
}

#[tokio::test]
async fn a_restarted_cache_resumes_from_any_kept_revision() {
    let world = World::new().await;
    world.put("a/x", "").await;
    world.put("a/y", "").await;
    world.delete("a/x").await;
    world.put("a/z", "").await;
    let again = World::cacher(&world.engine, &world.clock, &world.tasks).await;
    let world = World { cacher: again, ..world };
    for (after, expected) in [
        (1, expect!["+x@2 +y@3 -x@4 +z@5"]),
        (2, expect!["+y@3 -x@4 +z@5"]),
        (3, expect!["-x@4 +z@5"]),
        (5, expect![""]),
    ] {
        let mut watcher = world.cacher.watch(everything(), Revision::from_log(after)).expect("held");
        check(expected, &world.drain(&mut watcher).await);
    }
}

#[tokio::test]
async fn a_stopped_cache_closes_its_watchers() {
    let world = World::new().await;
    let start = world.put("a/x", "").await;
    let mut watcher = world.cacher.watch(everything(), start).expect("held");
    world.cacher.stop();
    watcher.ready().await;
    assert!(matches!(watcher.try_next(), Some(WatchStep::Closed)));
    assert!(world.tasks.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn an_unreadable_value_hides_nothing_else() {
    let world = World::new().await;
    world.put("a/x", "").await;
    world.commit("a/bad", Op::Put { value: "not json".into(), ttl: None }).await;
    world.put("a/y", "").await;
    check(expect!["4: a/x@2 a/y@4"], &world.state(None).await);
    assert_eq!(world.cacher.counters().decode_errors.load(std::sync::atomic::Ordering::Relaxed), 1);
    let all = Reach::Below(Key::new(PREFIX));
    let known =
        |state: &crate::Snapshot| state.unreadable(&all).map(Key::to_string).collect::<Vec<_>>().join(" ");
    let bad = Key::from(format!("{PREFIX}a/bad"));
    let state = world.cacher.snapshot().expect("ready");
    assert_eq!((known(&state), state.unreadable_len()), (bad.to_string(), 1));
    assert!(state.may_hide(&bad) && !state.may_hide(&Key::from(format!("{PREFIX}a/other"))));
    // What was shown is told as gone once it cannot be read, and as new when it can be read again.
    let mut watcher = world.cacher.watch(everything(), state.revision()).expect("held");
    for value in ["not json", ""] {
        match value {
            "" => drop(world.put("a/y", "").await),
            broken => drop(world.commit("a/y", Op::Put { value: broken.into(), ttl: None }).await),
        }
    }
    world.commit("a/bad", Op::Delete).await;
    check(expect!["7: a/x@2 a/y@6"], &world.state(None).await);
    check(expect!["-y@5 +y@6"], &world.drain(&mut watcher).await);
    let state = world.cacher.snapshot().expect("ready");
    assert_eq!((known(&state).as_str(), state.unreadable_len()), ("", 0));
}

#[tokio::test]
async fn watching_below_the_window_is_expired() {
    let world = World::new().await;
    let mut watcher = world.cacher.watch(everything(), Revision::from_log(1)).expect("held");
    let error = ReadError::Expired { asked: Revision::from_log(3), oldest: Revision::from_log(7) };
    assert_eq!(error.to_string(), "too old resource version: 3 (7)");
    check(expect![""], &world.drain(&mut watcher).await);
}
