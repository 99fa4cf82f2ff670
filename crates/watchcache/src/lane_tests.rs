//! Lanes and indexes: who is woken, and that nothing is lost, repeated or out of order on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;
use forebay_apimachinery::Revision;
use forebay_rt::Duration;

use crate::interest::{FieldSource, FieldTerm};
use crate::limits::EVICT_PERIOD;
use crate::tests::{PREFIX, World, check};
use crate::{Interest, Reach, Watcher};

fn below(namespace: &str) -> Reach {
    Reach::Below(format!("{PREFIX}{namespace}").into())
}

fn on(node: &str) -> Interest {
    let field = FieldSource::Indexed { fields: Box::new([0]), absent: "" };
    let term = FieldTerm { field, equal: true, value: node.to_string() };
    Interest { fields: [term].into(), ..Interest::all(below("")) }
}

fn named(name: &str) -> Interest {
    let term = FieldTerm { field: FieldSource::Name, equal: true, value: name.to_string() };
    Interest { fields: [term].into(), ..Interest::all(below("")) }
}

fn one(place: &str) -> Interest {
    Interest::all(Reach::One(format!("{PREFIX}{place}").into()))
}

impl World {
    fn watch(&self, interest: Interest, after: Revision) -> Watcher {
        self.cacher.watch(interest, after).expect("held")
    }

    fn woken(&self) -> u64 {
        self.cacher.counters().watchers_woken.load(Ordering::Relaxed)
    }

    /// Waits until `done` holds.
    async fn until(&self, what: &str, done: impl Fn() -> bool) {
        let deadline = self.clock.now() + Duration::from_secs(120);
        while !done() {
            assert!(self.clock.now() < deadline, "{what}");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn of_5000_watchers_on_5000_nodes_one_event_wakes_one() {
    let world = World::new().await;
    let start = world.put_on("a/x", "", "node-1").await;
    let woken = Arc::new(AtomicUsize::new(0));
    let (began, mut tasks) = (Arc::new(AtomicUsize::new(0)), Vec::new());
    for node in 0..5000 {
        let mut watcher = world.watch(on(&format!("node-{node}")), start);
        let (woken, began) = (woken.clone(), began.clone());
        tasks.push(tokio::spawn(async move {
            assert!(watcher.try_next().is_none());
            began.fetch_add(1, Ordering::Relaxed);
            watcher.ready().await;
            woken.fetch_add(1, Ordering::Relaxed);
            (node, watcher)
        }));
    }
    assert_eq!(world.cacher.lanes(), 5000);
    world.until("everybody waits", || began.load(Ordering::Relaxed) == 5000).await;
    world.put_on("a/x", "k=v", "node-1").await;
    world.until("one is woken", || woken.load(Ordering::Relaxed) == 1).await;
    for number in 0..100 {
        world.put_on(&format!("a/elsewhere-{number}"), "", "node-none").await;
    }
    world.cacher.fresh(world.soon()).await.expect("fresh");
    assert_eq!((woken.load(Ordering::Relaxed), world.woken()), (1, 1));
    world.put_on("a/x", "", "node-2").await;
    world.until("another is woken", || woken.load(Ordering::Relaxed) == 2).await;
    assert_eq!(world.woken(), 2);
    let (mut one, mut other) = (None, None);
    for task in tasks {
        if !task.is_finished() {
            task.abort();
            continue;
        }
        match task.await.expect("no panic") {
            (1, watcher) => one = Some(watcher),
            (2, watcher) => other = Some(watcher),
            (node, _) => panic!("{node} was woken"),
        }
    }
    check(expect!["~x@3 -x@104"], &world.drain(&mut one.expect("was woken")).await);
    check(expect!["+x@104"], &world.drain(&mut other.expect("was woken")).await);
}

#[tokio::test]
async fn an_event_is_in_the_lanes_of_its_previous_and_its_current_value_once_each() {
    let world = World::new().await;
    let start = world.put_on("a/x", "", "n1").await;
    let interests =
        [on("n1"), on("n2"), on(""), named("x"), one("a/x"), one("b/x"), Interest::all(below("a/"))];
    let mut watchers = interests.map(|interest| world.watch(interest, start));
    world.put_on("a/x", "", "n1").await;
    world.put_on("a/x", "", "n2").await;
    world.put_on("b/x", "", "").await;
    world.put_on("b/x", "", "n1").await;
    world.put_on("b/y", "", "n2").await;
    world.delete("a/x").await;
    let mut said = Vec::new();
    for watcher in &mut watchers {
        said.push(world.drain(watcher).await);
    }
    check(
        expect![[r#"
            ~x@3 -x@4 +x@6
            +x@4 +y@7 -x@8
            +x@5 -x@6
            ~x@3 ~x@4 +x@5 ~x@6 -x@8
            ~x@3 ~x@4 -x@8
            +x@5 ~x@6
            ~x@3 ~x@4 -x@8"#]],
        &said.join("\n"),
    );
}

#[tokio::test]
async fn a_lane_is_resumed_from_any_kept_revision_whether_it_is_there_or_not() {
    let world = World::new().await;
    for round in 0..4 {
        world.put_on("a/x", &format!("round=r{round}"), "n1").await;
        world.put_on("a/y", &format!("round=r{round}"), "n2").await;
    }
    let expected = ["+x@2 ~x@4 ~x@6 ~x@8", "~x@4 ~x@6 ~x@8", "~x@4 ~x@6 ~x@8", "~x@6 ~x@8"];
    // First there is no lane, then there is one that begins at 9, then one that has seen events.
    let mut held = Vec::new();
    for tail in ["", " ~x@10", " ~x@10 ~x@12"] {
        for (after, expected) in (1..).zip(expected) {
            let mut watcher = world.watch(on("n1"), Revision::from_log(after));
            assert_eq!(world.drain(&mut watcher).await, format!("{expected}{tail}"), "after {after}");
            held.push(watcher);
        }
        world.put_on("a/x", "", "n1").await;
        world.put_on("a/y", "", "n2").await;
    }
    for watcher in &mut held[8..] {
        assert_eq!(world.drain(watcher).await, "~x@14");
    }
    assert_eq!(world.cacher.lanes(), 1);
}

#[tokio::test]
async fn a_bookmark_on_a_lane_moves_with_everything_else_and_not_past_its_events() {
    let world = World::new().await;
    let start = world.put_on("a/x", "", "n1").await;
    let mut watcher = world.watch(on("n1"), start);
    let other = world.put_on("a/y", "", "n2").await;
    assert_eq!(watcher.bookmark(world.soon()).await, Some(other));
    world.put_on("a/x", "", "n1").await;
    let last = world.put_on("a/y", "", "n2").await;
    assert_eq!(watcher.bookmark(world.soon()).await, None, "an event comes first");
    check(expect!["~x@4"], &world.drain(&mut watcher).await);
    assert_eq!(watcher.bookmark(world.soon()).await, Some(last));
}

#[tokio::test(start_paused = true)]
async fn a_lane_ends_with_the_cache_and_goes_when_nobody_reads_it() {
    let world = World::new().await;
    let start = world.put_on("a/x", "", "n1").await;
    let mut watcher = world.watch(on("n1"), start);
    drop(world.watch(on("n2"), start));
    assert_eq!(world.cacher.lanes(), 2);
    world.clock.sleep(EVICT_PERIOD + Duration::from_millis(1)).await;
    world.put_on("a/y", "", "n3").await;
    world.cacher.fresh(world.soon()).await.expect("fresh");
    world.put_on("a/y", "", "n3").await;
    world.cacher.fresh(world.soon()).await.expect("fresh");
    assert_eq!(world.cacher.lanes(), 1);
    let reader = tokio::spawn(async move {
        watcher.ready().await;
        matches!(watcher.try_next(), Some(crate::WatchStep::Closed))
    });
    tokio::task::yield_now().await;
    world.cacher.stop();
    assert!(reader.await.expect("no panic"));
}

#[tokio::test]
async fn a_list_by_an_indexed_field_looks_at_what_has_the_value() {
    let world = World::new().await;
    for (place, node) in
        [("b/x", "n1"), ("a/y", "n1"), ("a/x", "n2"), ("c/z", ""), ("a/a", "n1"), ("ab/a", "n1")]
    {
        world.put_on(place, "", node).await;
    }
    world.put_on("a/x", "", "n1").await;
    world.put_on("b/x", "", "n2").await;
    world.delete("a/y").await;
    let now = world.cacher.fresh(world.soon()).await.expect("fresh");
    let listed = |interest: &Interest, after: Option<&str>| {
        let after = after.map(|place| format!("{PREFIX}{place}").into());
        let places = now.candidates(interest, after.as_ref());
        let place = |object: &Arc<forebay_object::Object>| {
            assert!(interest.matches(object));
            format!("{}/{}", object.namespace(), object.name())
        };
        places.map(place).collect::<Vec<_>>().join(" ")
    };
    check(expect!["a/a a/x ab/a"], &listed(&on("n1"), None));
    check(expect!["ab/a"], &listed(&on("n1"), Some("a/x")));
    check(expect!["a/a a/x"], &listed(&Interest { reach: below("a/"), ..on("n1") }, None));
    check(expect!["a/x"], &listed(&Interest { reach: below("a/"), ..on("n1") }, Some("a/a")));
    check(expect!["b/x"], &listed(&on("n2"), None));
    check(expect!["c/z"], &listed(&on(""), None));
    check(expect![""], &listed(&on("n3"), None));
    let before = world.cacher.exact(Revision::from_log(7), world.soon()).await.expect("held");
    let n1 = on("n1");
    let places: Vec<&str> = before.candidates(&n1, None).map(|object| object.key().as_str()).collect();
    let wanted = ["a/a", "a/y", "ab/a", "b/x"].map(|place| format!("{PREFIX}{place}"));
    assert_eq!(places, wanted, "a past state has its own index");
}

#[tokio::test]
async fn a_watch_list_by_node_begins_with_its_own_pods() {
    let world = World::new().await;
    world.put_on("a/x", "", "n1").await;
    world.put_on("a/y", "", "n2").await;
    let snapshot = world.cacher.fresh(world.soon()).await.expect("fresh");
    world.put_on("a/z", "", "n1").await;
    let mut watcher = world.cacher.watch_list(on("n1"), snapshot).expect("held");
    check(expect!["+x@2 END 3 +z@4"], &world.drain(&mut watcher).await);
}
