//! Too old a resourceVersion: 7 to 10.

use crate::world::{CM, MINUTE, PODS, SECRETS, World};

/// Longer than history is kept.
const ROUNDS: u64 = 12;
/// Writes of a burst: more than kube-apiserver's window has at first.
const BURST: usize = 2_000;

#[tokio::test(start_paused = true)]
async fn failure_07_a_quiet_filter_over_a_busy_resource() {
    let world = World::new().await;
    let start = world.put(PODS, "other-0", "").await;
    let query = format!(
        "watch=1&allowWatchBookmarks=true&fieldSelector=spec.nodeName%3Dmine&resourceVersion={start}"
    );
    let mut kubelet = world.watch(PODS, &query).await;
    for round in 1..=ROUNDS {
        for number in 0..20 {
            world.put(PODS, &format!("other-{number}"), "").await;
        }
        world.pass(MINUTE).await;
        let told = kubelet.told().await;
        assert!(told == "B" || told == "B B", "round {round}: {told}");
    }
    // Its last event is long gone from the window; its bookmark is not.
    let stale = world.watch(PODS, &query).await.told().await;
    assert_eq!(stale, "Expired");
    let query = format!("watch=1&fieldSelector=spec.nodeName%3Dmine&resourceVersion={}", kubelet.reached);
    drop(kubelet);
    let mut back = world.watch(PODS, &query).await;
    assert_eq!(back.told().await, "");
}

#[tokio::test(start_paused = true)]
async fn failure_08_a_quiet_resource_among_busy_ones_across_a_restart() {
    let mut world = World::new().await;
    world.put(SECRETS, "quiet", "").await;
    let (_, start) = world.names(SECRETS, "").await;
    let mut watch =
        world.watch(SECRETS, &format!("watch=1&allowWatchBookmarks=true&resourceVersion={start}")).await;
    for _ in 0..ROUNDS {
        world.put(CM, "busy", "").await;
        world.pass(MINUTE).await;
        watch.told().await;
    }
    let reached = watch.reached;
    assert!(reached > start, "bookmarks move with the others' writes");
    for _ in 0..3 {
        drop(watch);
        world.put(CM, "busy", "").await;
        world = world.restarted().await;
        watch = world
            .watch(SECRETS, &format!("watch=1&allowWatchBookmarks=true&resourceVersion={reached}"))
            .await;
        assert_eq!(watch.told().await, "");
    }
    world.put(SECRETS, "loud", "").await;
    assert_eq!(watch.told().await, "+loud");
}

#[tokio::test(start_paused = true)]
async fn failure_09_a_busy_resource_across_a_restart() {
    let mut world = World::new().await;
    let start = world.put(CM, "first", "").await;
    let mut revisions = vec![start];
    for round in 0..3 {
        for number in 0..30 {
            revisions.push(world.put(CM, &format!("o-{number}"), "").await);
        }
        world.delete(CM, "o-7").await;
        world = world.restarted().await;
        let before = world.store.called();
        // Whatever a client saw last, it goes on from there.
        for (place, revision) in revisions.iter().enumerate() {
            let mut watch = world.watch(CM, &format!("watch=1&resourceVersion={revision}")).await;
            let frames = watch.frames().await;
            let kinds: Vec<&str> = frames.iter().filter_map(|frame| frame["type"].as_str()).collect();
            let deletes = kinds.iter().filter(|kind| **kind == "DELETED").count();
            assert_eq!(
                kinds.len() - deletes,
                revisions.len() - place - 1,
                "round {round} after {revision}: {kinds:?}"
            );
            assert!(!kinds.contains(&"ERROR"), "round {round} after {revision}");
        }
        assert_eq!(world.store.called(), before, "and nothing is read from the store for it");
    }
}

#[tokio::test(start_paused = true)]
async fn failure_10_the_window_is_too_small_under_a_burst() {
    let world = World::new().await;
    let start = world.put(CM, "first", "").await;
    let mut parked = world.watch(CM, &format!("watch=1&resourceVersion={start}")).await;
    for number in 0..BURST {
        world.put(CM, &format!("o-{}", number % 50), "").await;
    }
    assert_eq!(parked.frames().await.len(), BURST, "one that did not read meanwhile");
    let mut late = world.watch(CM, &format!("watch=1&resourceVersion={start}")).await;
    let frames = late.frames().await;
    assert_eq!(frames.len(), BURST, "one that comes after it");
    assert!(frames.iter().all(|frame| frame["type"] != "ERROR"));
    // It is let go of when it has grown old, whether or not anything is written.
    world.pass(10 * MINUTE).await;
    assert_eq!(world.watch(CM, &format!("watch=1&resourceVersion={start}")).await.told().await, "Expired");
}
