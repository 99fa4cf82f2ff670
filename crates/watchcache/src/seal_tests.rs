//! What the window alone holds is sealed, and nobody can tell.

use std::sync::Arc;

use forebay_apimachinery::{Object, Revision};
use forebay_rt::Duration;

use crate::limits::{SEAL_MS, SEAL_PERIOD};
use crate::tests::{World, everything};
use crate::{Cacher, WatchStep};

const PODS: usize = 60;
const ROUNDS: usize = 5;

/// Everything that a watcher from `after` on is sent: kind, bytes with the event's revision.
async fn told(cacher: &Cacher, after: u64) -> Vec<(String, Vec<u8>)> {
    let mut watcher = cacher.watch(everything(), Revision::from_log(after)).expect("held");
    let mut out = Vec::new();
    while let Some(step) = watcher.try_next() {
        let WatchStep::Event { kind, object, revision } = step else { panic!("{step:?}") };
        let mut bytes = Vec::new();
        object.write_body(Some(revision), None, &mut bytes);
        out.push((format!("{kind:?} {} {}", object.name(), object.label("round").unwrap_or("")), bytes));
    }
    out
}

async fn states(cacher: &Cacher, world: &World) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for at in (1..(PODS * ROUNDS) as u64).step_by(37) {
        let past = cacher.exact(Revision::from_log(at), world.soon()).await.expect("held");
        let write = |object: &Arc<Object>| {
            let mut bytes = Vec::new();
            object.write_body(None, None, &mut bytes);
            bytes
        };
        out.extend(past.range(&everything().reach, None).map(write));
    }
    out
}

#[tokio::test(start_paused = true)]
async fn what_only_the_window_holds_is_sealed_and_nobody_can_tell() {
    let (clock, hand) = forebay_rt::Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), forebay_rt::Tasks::new());
    let cacher = World::start(engine.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    for round in 0..ROUNDS {
        for pod in 0..PODS {
            world.put_on(&format!("a/pod-{pod}"), &format!("round=r{round}"), "node").await;
        }
    }
    world.delete("a/pod-7").await;
    let now = world.cacher.fresh(world.soon()).await.expect("fresh");
    let (events, before) = (told(&world.cacher, 1).await, world.cacher.window());
    assert_eq!(before.items, PODS * ROUNDS + 1);
    let mut held = world.cacher.watch(everything(), Revision::FIRST).expect("held");
    let _first = held.try_next();
    hand.advance_ms(SEAL_MS + 1);
    world.clock.sleep(SEAL_PERIOD + Duration::from_millis(1)).await;
    let mut rounds = 0;
    while world.cacher.window().bytes * 5 > before.bytes * 4 {
        rounds += 1;
        assert!(rounds < 10_000, "{:?} {before:?}", world.cacher.window());
        tokio::task::yield_now().await;
    }
    assert_eq!(told(&world.cacher, 1).await, events);
    assert_eq!(told(&world.cacher, 200).await, events[199..]);
    let sealed = states(&world.cacher, &world).await;
    // A cache that was filled just now has sealed nothing yet.
    let plain = World::start(world.engine.clone(), &world.clock, &world.tasks);
    plain.wait_ready().await;
    assert_eq!(states(&plain, &world).await, sealed);
    let after = world.cacher.snapshot().expect("ready");
    let all = everything();
    let pairs = now.range(&all.reach, None).zip(after.range(&all.reach, None));
    assert!(pairs.into_iter().all(|(old, new)| Arc::ptr_eq(old, new)), "the state is left alone");
    // Its event is older than what follows, and was pulled before.
    assert!(matches!(held.try_next(), Some(WatchStep::Event { object, .. }) if object.name() == "pod-1"));
}

#[tokio::test(start_paused = true)]
async fn a_trickle_is_sealed_once_it_is_worth_it() {
    let (clock, hand) = forebay_rt::Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), forebay_rt::Tasks::new());
    let cacher = World::start(engine.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    let (mut each, note) = (0, "x".repeat(200));
    for round in 0..60 {
        world.put_on("a/pod", &format!("round={note}{round:02}"), "node").await;
        world.cacher.fresh(world.soon()).await.expect("fresh");
        if round == 1 {
            // The first that was replaced, plain.
            each = world.cacher.window().bytes;
        }
        hand.advance_ms(1_000);
        world.clock.sleep(SEAL_PERIOD).await;
    }
    hand.advance_ms(SEAL_MS);
    let mut rounds = 0;
    while world.cacher.window().bytes * 3 > 60 * each * 2 {
        rounds += 1;
        assert!(rounds < 1_000, "{:?} {each}", world.cacher.window());
        world.clock.sleep(SEAL_PERIOD).await;
    }
    assert_eq!(told(&world.cacher, 1).await.len(), 60);
}
