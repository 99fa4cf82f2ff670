//! One watcher as its connection sees it: what it says of its place, how far it looks and pulls at a time,
//! and when it waits.

use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use forebay_apimachinery::Revision;
use forebay_rt::{Clock, Duration, Tasks};

use crate::limits::{EVICT_PERIOD, WATCH_BATCH_MAX, WINDOW_MS};
use crate::tests::{World, everything, labelled};
use crate::{Budget, Interest, WatchStep, Watcher};

impl World {
    /// What was committed has reached the cache.
    async fn arrived(&self) -> Revision {
        self.cacher.fresh(self.soon()).await.expect("fresh").revision()
    }

    fn watch_now(&self, interest: Interest) -> Watcher {
        let now = self.cacher.snapshot().expect("ready").revision();
        self.cacher.watch(interest, now).expect("held")
    }
}

fn shown(step: Option<WatchStep>) -> String {
    match step {
        None => "-".to_owned(),
        Some(WatchStep::Event { object, revision, .. }) => format!("{}@{revision}", object.name()),
        Some(WatchStep::InitialEventsEnd(_)) => "END".to_owned(),
        Some(other) => format!("{other:?}"),
    }
}

fn next(watcher: &mut Watcher) -> String {
    shown(watcher.try_next())
}

/// What one has now who has so much room and may look so often, or that it is to ask again.
fn within(watcher: &mut Watcher, room: usize, budget: &mut Budget) -> String {
    match watcher.next_within(room, budget) {
        Poll::Ready(step) => shown(step),
        Poll::Pending => "later".to_owned(),
    }
}

fn is_ready(watcher: &mut Watcher) -> bool {
    watcher.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn watchers_of_everything_at_one_place_need_only_one_of_them_to_look() {
    let world = World::new().await;
    let [mut one, mut other] = [everything(), everything()].map(|interest| world.watch_now(interest));
    let mut some = world.watch_now(labelled("app=web"));
    for watcher in [&mut one, &mut other, &mut some] {
        assert_eq!(next(watcher), "-");
        assert!(watcher.is_at_end());
    }
    let at = one.position().expect("it wants everything");
    assert_eq!((other.position(), some.position()), (Some(at), None));
    let first = world.put("a/x", "app=web").await;
    world.arrived().await;
    assert!(!one.is_at_end() && !other.is_at_end());
    assert_eq!(next(&mut one), "x@2");
    assert!(
        !one.pass(at, first, 100) && !some.pass(at, first, 100),
        "the one was sent it, the other is elsewhere"
    );
    assert!(other.pass(at, first, 100));
    assert!(other.is_at_end() && !other.pass(at, first, 100));
    assert_eq!((other.passed(), other.position()), (Some(first), Some(at.after())));
    assert_eq!((next(&mut other), next(&mut some)), ("-".into(), "x@2".into()));
    // Of two that it has pulled one is left: what is next for the others is not next for it.
    let second = world.put("a/y", "").await;
    world.put("a/z", "").await;
    world.arrived().await;
    assert_eq!(next(&mut one), "y@3");
    assert_eq!((one.position(), one.passed(), one.is_at_end()), (None, None, false));
    assert!(!one.pass(at.after(), second, 100));
    assert_eq!((next(&mut one), next(&mut one)), ("z@4".into(), "-".into()));
    assert!(one.position().is_some() && one.is_at_end());
}

#[tokio::test]
async fn one_that_begins_with_the_state_has_no_place_before_its_end() {
    let world = World::new().await;
    world.put("a/x", "").await;
    let now = world.arrived().await;
    let snapshot = world.cacher.snapshot().expect("ready");
    let mut watcher = world.cacher.watch_list(everything(), snapshot.clone()).expect("held");
    let filtered = world.cacher.watch_list(labelled("app=web"), snapshot).expect("held");
    assert!(watcher.has_segments() && !filtered.has_segments(), "those that match may be some of a block");
    for step in ["x@2", "END"] {
        assert!(watcher.is_initial() && is_ready(&mut watcher));
        assert!(!watcher.has_place() && !watcher.is_at_end());
        assert_eq!((watcher.position(), watcher.passed()), (None, None));
        assert_eq!(next(&mut watcher), step);
    }
    assert!(!watcher.is_initial() && !watcher.has_segments() && watcher.has_place());
    assert_eq!((watcher.passed(), next(&mut watcher)), (Some(now), "-".into()));
    assert!(watcher.is_at_end() && watcher.position().is_some());
}

#[tokio::test]
async fn no_more_is_pulled_than_there_is_room_for() {
    let world = World::new().await;
    let mut watcher = world.watch_now(everything());
    for number in 1..=7 {
        world.put(&format!("a/{number}"), "").await;
    }
    world.arrived().await;
    let snapshot = world.cacher.snapshot().expect("ready");
    let bytes = snapshot.range(&everything().reach, None).map(|object| object.body_len());
    let two = 2 * bytes.max().expect("there are some");
    let mut take = |room| {
        let name = within(&mut watcher, room, &mut Budget::new(usize::MAX));
        // Pulled, and not given out.
        (name, watcher.passed().is_none())
    };
    assert_eq!(take(1), ("1@2".into(), false), "one always is");
    assert_eq!(take(two), ("2@3".into(), true));
    assert_eq!(take(two), ("3@4".into(), false));
    assert_eq!(take(usize::MAX), ("4@5".into(), true));
    assert_eq!(take(1), ("5@6".into(), true));
    assert_eq!(take(1), ("6@7".into(), true));
    assert_eq!(take(1), ("7@8".into(), false));
    // One that was passed over says how large the next may be.
    let at = watcher.position().expect("it wants everything");
    let last = world.put("a/8", "").await;
    world.put("a/9", "").await;
    world.put("a/10", "").await;
    world.arrived().await;
    assert!(watcher.pass(at, last, 1_000));
    assert_eq!(within(&mut watcher, 1_999, &mut Budget::new(usize::MAX)), "9@10");
    assert!(watcher.passed().is_some(), "the other would not have fitted");
}

#[tokio::test]
async fn whoever_asks_in_one_go_is_given_what_there_was_and_no_look_more() {
    let world = World::new().await;
    let mut watcher = world.watch_now(everything());
    let many = 3 * WATCH_BATCH_MAX - 8;
    for number in 0..many {
        world.put(&format!("a/{number}"), "").await;
    }
    world.arrived().await;
    let mut budget = Budget::new(usize::MAX);
    for number in 0..many {
        assert_eq!(within(&mut watcher, usize::MAX, &mut budget), format!("{number}@{}", number + 2));
    }
    world.put("a/late", "").await;
    world.arrived().await;
    assert_eq!(
        within(&mut watcher, usize::MAX, &mut budget),
        "-",
        "the last look found fewer than it asked for"
    );
    assert!(next(&mut watcher).starts_with("late@"));
}

#[tokio::test]
async fn looks_are_counted_by_what_one_object_takes() {
    let world = World::new().await;
    let (mut all, mut some) = (world.watch_now(everything()), world.watch_now(labelled("app=web")));
    for number in 1..=4 {
        world.put(&format!("a/{number}"), "app=web").await;
    }
    world.arrived().await;
    let in_turns = |watcher: &mut Watcher, looks| {
        let mut budget = Budget::new(looks);
        let mut steps = Vec::new();
        while steps.last().is_none_or(|last| last != "later" && last != "-") {
            steps.push(within(watcher, usize::MAX, &mut budget));
        }
        steps.join(" ")
    };
    assert_eq!(in_turns(&mut all, 0), "later");
    assert_eq!(in_turns(&mut all, 3), "1@2 2@3 3@4 later");
    assert_eq!(in_turns(&mut all, 3), "4@5 -");
    // One look at the object, and one at its label.
    assert_eq!(in_turns(&mut some, 4), "1@2 2@3 later");
    assert_eq!(in_turns(&mut some, 3), "3@4 4@5 later", "what is left is enough for one more");
    assert_eq!(in_turns(&mut some, 1), "-");
}

#[tokio::test]
async fn a_bookmark_is_looked_for_a_few_events_at_a_time_and_puts_off_no_event() {
    let world = World::new().await;
    let mut watcher = world.watch_now(labelled("app=web"));
    for number in 0..5 {
        world.put(&format!("a/{number}"), "").await;
    }
    let now = world.arrived().await;
    assert!(watcher.bookmark_within(&mut Budget::new(0)).is_pending());
    assert_eq!(watcher.passed(), Some(Revision::FIRST), "it has not looked");
    // Two looks an event.
    assert!(watcher.bookmark_within(&mut Budget::new(6)).is_pending());
    assert_eq!(watcher.passed(), Some(Revision::from_log(4)));
    assert_eq!(watcher.bookmark_within(&mut Budget::new(6)), Poll::Ready(Some(now)));
    world.put("a/web", "app=web").await;
    world.arrived().await;
    assert_eq!(watcher.bookmark_within(&mut Budget::new(6)), Poll::Ready(None));
    assert_eq!(watcher.bookmark_within(&mut Budget::new(6)), Poll::Ready(None), "the event comes first");
    assert_eq!(next(&mut watcher), "web@7");
}

#[tokio::test]
async fn one_waits_while_there_is_nothing_and_is_woken_once_for_what_comes() {
    let world = World::new().await;
    let mut watcher = world.watch_now(everything());
    let woken = || world.cacher.counters().watchers_woken.load(Ordering::Relaxed);
    assert!(!is_ready(&mut watcher));
    world.put("a/x", "").await;
    world.put("a/y", "").await;
    world.arrived().await;
    assert!(is_ready(&mut watcher));
    assert_eq!(woken(), 1);
    assert_eq!(next(&mut watcher), "x@2");
    assert!(is_ready(&mut watcher), "the other was pulled with it");
    assert_eq!((next(&mut watcher), next(&mut watcher)), ("y@3".into(), "-".into()));
    assert!(!is_ready(&mut watcher));
    assert_eq!(woken(), 1);
}

#[tokio::test]
async fn one_that_waits_for_a_later_revision_is_ahead_until_the_cache_is_there() {
    let world = World::new().await;
    let now = world.put("a/x", "").await;
    world.arrived().await;
    let [there, ahead] = [now, Revision::from_log(now.get() + 1)]
        .map(|after| world.cacher.watch(everything(), after).expect("will come"));
    assert!(!there.is_ahead() && ahead.is_ahead());
    world.put("a/y", "").await;
    world.arrived().await;
    assert!(!there.is_ahead() && !ahead.is_ahead());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_given_up_counts_as_terminated_if_it_fell_behind() {
    let (clock, hand) = Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let cacher = World::start(engine.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    let (behind, mut there) = (world.watch_now(everything()), world.watch_now(everything()));
    world.put("a/x", "").await;
    world.put("a/y", "").await;
    world.arrived().await;
    assert_eq!((next(&mut there), next(&mut there)), ("x@2".into(), "y@3".into()));
    assert!(behind.has_place() && there.has_place());
    hand.advance_ms(WINDOW_MS + 1);
    world.clock.sleep(EVICT_PERIOD + Duration::from_millis(1)).await;
    assert!(!behind.has_place() && there.has_place());
    let terminated = || world.cacher.counters().terminated_watchers.load(Ordering::Relaxed);
    there.give_up();
    assert_eq!(terminated(), 0);
    behind.give_up();
    assert_eq!(terminated(), 1);
}

#[tokio::test]
async fn those_that_are_sent_every_event_are_counted_while_they_are_there() {
    let world = World::new().await;
    let count = || world.cacher.counters().watchers_of_all.load(Ordering::Relaxed);
    let watchers =
        [everything(), everything(), labelled("app=web")].map(|interest| world.watch_now(interest));
    assert_eq!(count(), 2);
    let [one, other, some] = watchers;
    other.give_up();
    drop(some);
    assert_eq!(count(), 1);
    drop(one);
    assert_eq!(count(), 0);
}
