//! The window's size: what gives way under pressure, and what is given back when traffic stops.

use expect_test::expect;
use forebay_apimachinery::Revision;
use forebay_backend::Op;
use forebay_rt::{Clock, Duration, Random, Tasks};

use crate::limits::{EVICT_PERIOD, WINDOW_BYTES_MAX, WINDOW_MS};
use crate::tests::{World, check, everything, noise};

#[tokio::test(start_paused = true)]
async fn a_window_gives_back_its_room_when_traffic_stops() {
    let (clock, hand) = Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let cacher = World::start(engine.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    for number in 0..600 {
        world.put(&format!("a/x{}", number % 7), "").await;
    }
    let start = world.cacher.fresh(world.soon()).await.expect("fresh").revision();
    let busy = world.cacher.window();
    assert!(busy.items == 600 && busy.capacity >= 600 && busy.grown > 0 && busy.shrunk == 0, "{busy:?}");
    hand.advance_ms(WINDOW_MS + 1);
    world.clock.sleep(EVICT_PERIOD + Duration::from_millis(1)).await;
    let quiet = world.cacher.window();
    assert!(quiet.items == 1 && quiet.capacity <= 64 && quiet.shrunk > 0, "{quiet:?}");
    assert_eq!(quiet.pressed_out, 0, "they had their time");
    let refused = world.cacher.watch(everything(), Revision::FIRST).err().map(|error| error.to_string());
    check(expect!["too old resource version: 1 (600)"], &refused.unwrap_or_default());
    // Who had seen everything misses nothing by it.
    let mut watcher = world.cacher.watch(everything(), start).expect("held");
    world.put("a/x0", "").await;
    check(expect!["~x0@602"], &world.drain(&mut watcher).await);
}

#[tokio::test]
async fn under_pressure_the_byte_limit_wins_and_says_so() {
    let world = World::new().await;
    let mut early = world.cacher.watch(everything(), Revision::FIRST).expect("held");
    let mut parked = world.cacher.watch(everything(), Revision::FIRST).expect("held");
    // What can be sealed would be, for want of room.
    let note = noise(&Random::seeded(5), 1 << 20);
    for number in 0..2 * (WINDOW_BYTES_MAX >> 20) {
        let value = format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"x","namespace":"a","uid":"u"}},"spec":{{"note":"{note}{number}"}}}}"#
        );
        world.commit("a/x", Op::Put { value: value.into(), ttl: None }).await;
        if number < 10 {
            world.drain(&mut early).await;
        }
    }
    let now = world.cacher.fresh(world.soon()).await.expect("fresh").revision();
    let window = world.cacher.window();
    assert!(window.bytes <= WINDOW_BYTES_MAX && window.items < 64 && window.pressed_out > 60, "{window:?}");
    let oldest = now.get() - window.items as u64;
    assert_eq!(window.pressed_out + window.items as u64 + 1, now.get());
    // The edge (kubernetes#49992): the last that is gone, and the first that is held.
    assert!(world.cacher.watch(everything(), Revision::from_log(oldest - 1)).is_err());
    let mut watcher = world.cacher.watch(everything(), Revision::from_log(oldest)).expect("held");
    assert_eq!(world.drain(&mut watcher).await.split(' ').count(), window.items);
    let expired = format!("EXPIRED 11<{oldest}");
    assert_eq!(world.drain(&mut early).await, expired);
    assert_eq!(world.drain(&mut parked).await, format!("EXPIRED 1<{oldest}"));
    assert_eq!(world.cacher.counters().terminated_watchers.load(std::sync::atomic::Ordering::Relaxed), 2);
}
