//! What the window alone holds: when it is sealed, how much of it is loose meanwhile, and what readers find
//! then.

use std::sync::Arc;

use forebay_object::Object;
use forebay_object::seal::{CHAIN_MAX, RecentBlocks};
use forebay_revlog::{Limits, Writer};

use super::Haste;
use super::window::Replaced;
use crate::event::Event;
use crate::limits::{SEAL_BATCH, SEAL_BYTES_MIN, SEAL_LOOKS, SEAL_MS, SEAL_PATIENCE_MS};
use crate::snapshot_tests::pod;

/// When everything of these tests begins.
const START_MS: u64 = 1_000_000;

struct World {
    window: Writer<Arc<Event>>,
    replaced: Replaced,
    revision: u64,
}

impl World {
    fn new() -> World {
        let limits = Limits { items_max: 1 << 20, bytes_max: usize::MAX, age_ms_max: u64::MAX };
        let window = Writer::new(1, limits);
        let replaced = Replaced::new(window.first_seq());
        World { window, replaced, revision: 1 }
    }

    fn append(&mut self, previous: Option<Arc<Object>>, current: Option<Arc<Object>>, at_ms: u64) {
        let revision = forebay_apimachinery::Revision::from_log(self.revision);
        let event = Arc::new(Event { revision, previous, current, is_of_hole: false, hidden: None });
        self.replaced.note(self.window.next_seq(), std::iter::once(&event));
        let bytes = event.cost_bytes();
        self.window.append([(self.revision, event, bytes)], at_ms);
    }

    fn next(&mut self, place: &str) -> Arc<Object> {
        self.revision += 1;
        pod(place, self.revision, ("n1", ""))
    }

    /// Pods that come, so many, and replace nothing.
    fn create(&mut self, count: usize, at_ms: u64) -> Vec<Arc<Object>> {
        let create = |number| {
            let pod = self.next(&format!("a/{number}"));
            self.append(None, Some(pod.clone()), at_ms);
            pod
        };
        (0..count).map(create).collect()
    }

    /// Each of `pods` is replaced, or deleted. Returns what takes their places.
    fn replace(&mut self, pods: Vec<Arc<Object>>, at_ms: u64) -> Vec<Arc<Object>> {
        let replace = |pod: Arc<Object>| {
            let next = self.next(&format!("a/{}", pod.name()));
            self.append(Some(pod), Some(next.clone()), at_ms);
            next
        };
        pods.into_iter().map(replace).collect()
    }

    fn delete(&mut self, pods: Vec<Arc<Object>>, at_ms: u64) {
        for pod in pods {
            self.revision += 1;
            self.append(Some(pod), None, at_ms);
        }
    }

    fn loose(&mut self) -> usize {
        self.replaced.loose_bytes(&self.window)
    }

    /// Whether there was something to seal; it is, then.
    fn seal(&mut self, haste: Haste, now_ms: u64) -> bool {
        let Some(found) = self.replaced.next_job(&self.window, haste, now_ms) else { return false };
        let batch = found.seal(Arc::new(RecentBlocks::default()));
        self.replaced.sealed();
        batch.put_in_place(&mut self.window);
        true
    }

    fn events(&self) -> Vec<Arc<Event>> {
        self.window.log().page(0, usize::MAX).0
    }

    /// What readers of the window find: of each event the revisions and the texts of both objects.
    fn told(&self) -> Vec<String> {
        let text = |object: &Arc<Object>| {
            let mut bytes = Vec::new();
            object.write_body(None, None, &mut bytes);
            format!("{} {}", object.revision(), String::from_utf8_lossy(&bytes))
        };
        let both = |event: &Arc<Event>| {
            let texts =
                [&event.previous, &event.current].map(|object| object.as_ref().map_or("-".into(), text));
            texts.join(" -> ")
        };
        self.events().iter().map(both).collect()
    }

    /// Objects that were replaced and are still in plain form.
    fn plain(&self) -> usize {
        let events = self.events();
        let replaced = events.iter().filter_map(|event| event.previous.as_ref());
        replaced.filter(|object| object.loose_bytes() > 0).count()
    }
}

fn body(pods: &[Arc<Object>]) -> usize {
    pods.iter().map(|pod| pod.body_len()).sum()
}

#[test]
fn what_was_replaced_is_loose_until_it_is_sealed_or_gone() {
    let mut world = World::new();
    let pods = world.create(20, START_MS);
    assert_eq!(world.loose(), 0, "the state has them");
    world.replace(pods.clone(), START_MS);
    assert_eq!(world.loose(), body(&pods));
    // The window forgets five of those events, and what was replaced in them.
    world.window.release(pods.last().expect("some").revision().get() + 5);
    assert_eq!(world.loose(), body(&pods[5..]));
    let found = world.replaced.next_job(&world.window, Haste::None, START_MS + SEAL_MS).expect("it is time");
    assert_eq!(world.loose(), body(&pods[5..]), "it is being sealed");
    found.seal(Arc::new(RecentBlocks::default())).put_in_place(&mut world.window);
    world.replaced.sealed();
    assert_eq!((world.loose(), world.plain()), (0, 0));
}

#[test]
fn what_was_replaced_some_seconds_ago_is_sealed_and_says_the_same() {
    let mut world = World::new();
    let pods = world.create(20, START_MS);
    let twice = world.replace(pods, START_MS);
    let left = world.replace(twice, START_MS);
    world.delete(left[..10].to_vec(), START_MS);
    let (told, bytes) = (world.told(), world.window.usage().bytes);
    assert!(!world.seal(Haste::None, START_MS + SEAL_MS - 1), "most watchers are to have had it");
    assert!(world.replaced.is_behind(&world.window) && world.plain() == 50);
    assert!(world.seal(Haste::None, START_MS + SEAL_MS));
    assert!(!world.replaced.is_behind(&world.window) && world.plain() == 0);
    assert_eq!(world.replaced.next_seq(), world.window.next_seq());
    assert!(world.told() == told, "nobody can tell");
    assert!(world.window.usage().bytes < bytes / 2, "{} of {bytes}", world.window.usage().bytes);
    // What a pod was is one thing, in the event that brought it and in the one that took it away.
    let events = world.events();
    for (brought, took) in events.iter().zip(&events[20..]) {
        let [brought, took] = [&brought.current, &took.previous].map(|it| it.as_ref().expect("there"));
        assert!(Arc::ptr_eq(brought, took), "{} at {}", brought.name(), brought.revision());
    }
    assert!(events[50..60].iter().all(|event| event.current.as_ref().is_some_and(|it| it.loose_bytes() > 0)));
}

#[test]
fn a_trickle_waits_for_more_and_after_a_minute_stays_as_it_is() {
    let mut world = World::new();
    let pods = world.create(1, START_MS);
    assert!(body(&pods) < SEAL_BYTES_MIN);
    world.replace(pods.clone(), START_MS);
    let patience = START_MS + SEAL_MS + SEAL_PATIENCE_MS;
    for now_ms in [START_MS + SEAL_MS, patience - 1] {
        assert!(!world.seal(Haste::None, now_ms));
        assert!(world.replaced.is_behind(&world.window) && world.loose() == body(&pods));
    }
    assert!(!world.seal(Haste::None, patience));
    assert!(!world.replaced.is_behind(&world.window));
    assert_eq!((world.loose(), world.plain()), (0, 1));
    // More came in time.
    let mut world = World::new();
    let pods = world.create(20, START_MS);
    world.replace(pods[..1].to_vec(), START_MS);
    world.replace(pods[1..].to_vec(), START_MS + 10_000);
    assert!(!world.seal(Haste::None, START_MS + 10_000));
    assert!(world.seal(Haste::None, START_MS + 10_000 + SEAL_MS) && world.plain() == 0);
}

#[test]
fn events_with_nothing_to_seal_are_passed_by_whole_batches_and_not_without_end() {
    let mut world = World::new();
    let pods = world.create(SEAL_BATCH, START_MS);
    world.replace(pods[..20].to_vec(), START_MS);
    assert!(world.seal(Haste::None, START_MS + SEAL_MS), "behind a batch with nothing in it");
    let mut world = World::new();
    let (first, batch) = (world.window.first_seq(), SEAL_BATCH as u64);
    let pods = world.create((SEAL_LOOKS + 2) * SEAL_BATCH, START_MS);
    world.replace(pods[..20].to_vec(), START_MS);
    assert!(!world.seal(Haste::None, START_MS + SEAL_MS));
    assert_eq!(world.replaced.next_seq(), first + SEAL_LOOKS as u64 * batch, "others have their turn");
    assert!(world.seal(Haste::None, START_MS + SEAL_MS));
}

#[test]
fn in_haste_whatever_is_loose_is_sealed_at_once() {
    let mut world = World::new();
    let pods = world.create((SEAL_LOOKS + 2) * SEAL_BATCH, START_MS);
    world.replace(pods[..1].to_vec(), START_MS);
    let bytes = body(&pods[..1]);
    assert_eq!(world.loose(), bytes);
    assert!(world.seal(Haste::Now, START_MS), "however little, and far behind");
    assert_eq!(world.loose(), 0);
    assert!(!world.seal(Haste::Now, START_MS) && !world.replaced.is_behind(&world.window));
    // Where nothing is loose there is nothing to do.
    let mut world = World::new();
    world.create(20, START_MS);
    assert!(!world.seal(Haste::Now, START_MS) && !world.replaced.is_behind(&world.window));
}

#[test]
fn what_is_replaced_again_and_again_is_read_through_few_others() {
    let mut world = World::new();
    let mut pods = world.create(1, START_MS);
    for _ in 0..3 * CHAIN_MAX {
        pods = world.replace(pods, START_MS);
        assert!(world.seal(Haste::Now, START_MS));
    }
    let events = world.events();
    let chains = events.iter().filter_map(|event| event.previous.as_ref()).map(|object| object.chain());
    // One in a block ends a chain, and the next begins.
    let expected = (1..=CHAIN_MAX).chain([0]).cycle().take(3 * usize::from(CHAIN_MAX));
    assert_eq!(chains.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}
