//! Lost events: 14 to 18.

use std::sync::atomic::Ordering;

use crate::store::Way;
use crate::world::{CM, MINUTE, World, rv};

#[tokio::test(start_paused = true)]
async fn failure_14_a_delete_without_its_previous_value_leaves_a_ghost() {
    let world = World::new().await;
    let start = world.put(CM, "a", "on=yes").await;
    let changed = world.put(CM, "a", "on=yes").await;
    let mut all = world.watch(CM, &format!("watch=1&resourceVersion={changed}")).await;
    let mut selected =
        world.watch(CM, &format!("watch=1&labelSelector=on%3Dyes&resourceVersion={changed}")).await;
    // The store tells nobody what a deleted object was.
    world.delete(CM, "a").await;
    for watch in [&mut all, &mut selected] {
        let frames = watch.frames().await;
        let [deleted] = frames.as_slice() else { panic!("{frames:?}") };
        assert_eq!(deleted["type"], "DELETED");
        assert_eq!(deleted["object"]["metadata"]["labels"]["on"], "yes", "its last state");
        assert!(rv(&deleted["object"]) > changed, "at the revision of its delete");
    }
    for query in ["", "resourceVersion=0", "labelSelector=on%3Dyes"] {
        assert_eq!(world.names(CM, query).await.0, "", "{query}");
    }
    let mut anew = world.watch(CM, &format!("watch=1&resourceVersion={start}")).await;
    assert_eq!(anew.told().await, "~a -a");
}

/// A hole in the history: the delete is never seen, and the state is read again.
#[tokio::test(start_paused = true)]
async fn failure_14_a_hole_in_the_history_leaves_a_ghost() {
    let world = World::new().await;
    let start = world.put(CM, "ghost", "").await;
    let mut watch = world.watch(CM, &format!("watch=1&resourceVersion={start}")).await;
    world.set(|faults| faults.feeds_stalled = true);
    world.delete(CM, "ghost").await;
    let new = world.put(CM, "new", "").await;
    // All of that is compacted before the cache has seen it.
    for _ in 0..8 {
        world.pass(MINUTE).await;
        world.put(CM, "new", "").await;
    }
    world.store.carry_on_forgetful();
    world.pass(MINUTE).await;
    // Who watched cannot be told what is lost, so its stream ends in its turn, and it is told to list where
    // it begins again.
    assert_eq!(watch.told().await, ".");
    assert_eq!(world.watch(CM, &format!("watch=1&resourceVersion={start}")).await.told().await, "Expired");
    for query in ["", "resourceVersion=0"] {
        let (names, at) = world.names(CM, query).await;
        assert_eq!(names, "new", "{query}");
        assert!(at > new);
    }
}

/// An unreachable store and a lost event are two things: one is waited for, the other has the state read
/// again.
#[tokio::test(start_paused = true)]
async fn failure_15_an_unreachable_store_is_taken_for_a_lost_event() {
    let world = World::new().await;
    let start = world.put(CM, "a", "").await;
    let mut watch = world.watch(CM, &format!("watch=1&resourceVersion={start}")).await;
    let filled = initializations(&world);
    // The feed loses changes, and there is no leader of whom another could be had.
    world.set(|faults| {
        faults.feeds_stalled = true;
        faults.feed = Way::Leaderless;
    });
    for name in ["b", "c", "d"] {
        world.put(CM, name, "").await;
    }
    world.store.carry_on_forgetful();
    world.pass(MINUTE).await;
    assert_eq!(watch.told().await, "", "told nothing that is not known, and not sent away");
    assert_eq!(world.names(CM, "resourceVersion=0").await, ("a".to_string(), start), "what was seen stands");
    world.set(|faults| faults.feed = Way::Open);
    world.pass(MINUTE).await;
    assert_eq!(watch.told().await, "+b +c +d");
    assert_eq!(initializations(&world), filled, "the state was not read again");
}

fn initializations(world: &World) -> u64 {
    let target = world.target(CM);
    let store = target.served.store.clone().expect("stored");
    store.cacher.counters().initializations.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn failure_16_a_bookmark_overtakes_events() {
    let world = World::new().await;
    let start = world.put(CM, "o-0", "").await;
    let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion={start}");
    let mut watches = Vec::new();
    for round in 0..120_u64 {
        // Streams that begin at every moment have their bookmarks at every moment.
        if round % 4 == 0 {
            watches.push((world.watch(CM, &query).await, Vec::new()));
        }
        world.set(|faults| faults.feeds_stalled = round % 3 == 1);
        world.put(CM, &format!("o-{}", round % 7), "").await;
        world.put(crate::world::SECRETS, "other", "").await;
        for (watch, frames) in &mut watches {
            frames.extend(watch.frames().await);
        }
        world.pass(MINUTE / 30).await;
    }
    world.set(|faults| faults.feeds_stalled = false);
    world.pass(MINUTE).await;
    let mut bookmarks = 0;
    let mut sequences = Vec::new();
    for (mut watch, mut frames) in watches {
        frames.extend(watch.frames().await);
        let mut reached = start;
        for frame in &frames {
            let at = rv(&frame["object"]);
            match frame["type"].as_str() {
                Some("BOOKMARK") => {
                    assert!(at >= reached, "a bookmark of {at} after {reached}");
                    bookmarks += 1;
                }
                _ => assert!(at > reached, "an event of {at} after {reached}"),
            }
            reached = at;
        }
        let events = frames.iter().filter(|frame| frame["type"] != "BOOKMARK");
        sequences.push(events.map(|frame| rv(&frame["object"])).collect::<Vec<_>>());
    }
    assert!(bookmarks > 100, "{bookmarks}");
    assert!(sequences.iter().all(|sequence| sequence.len() == 120 && *sequence == sequences[0]));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_held_up_beyond_its_end_says_first_how_far_it_is() {
    let world = World::new().await;
    let start = world.put(CM, "a", "").await;
    let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds=30&resourceVersion={start}");
    let mut watch = world.watch(CM, &query).await;
    let other = world.put(crate::world::SECRETS, "other", "").await;
    world.pass(MINUTE).await;
    assert_eq!((watch.told().await.as_str(), watch.reached), ("B .", other));
}

#[tokio::test(start_paused = true)]
async fn failure_17_a_slow_reader_is_skipped_in_silence() {
    let world = World::new().await;
    let start = world.put(CM, "o-0", "").await;
    let mut slow = world.watch(CM, &format!("watch=1&resourceVersion={start}")).await;
    let mut pausing = world.watch(CM, &format!("watch=1&resourceVersion={start}")).await;
    for round in 0..12 {
        world.put(CM, &format!("o-{round}"), "").await;
        world.pass(MINUTE).await;
        // One that is slow, but within the window, misses nothing.
        if round % 3 == 2 {
            assert_eq!(pausing.frames().await.len(), 3, "round {round}");
        }
    }
    assert_eq!(slow.told().await, "Expired", "the first thing it is told is that something is missing");
    assert_eq!(slow.told().await, ".");
}

#[tokio::test(start_paused = true)]
async fn failure_18_a_watch_of_one_namespace_by_name_loses_events() {
    let world = World::new().await;
    let path = "/v1/namespaces";
    let start = world.put(path, "team", "").await;
    let by_field = format!("watch=1&fieldSelector=metadata.name%3Dteam&resourceVersion={start}");
    let mut by_field = world.watch(path, &by_field).await;
    let mut by_name = world.watch("/v1/namespaces/team", &format!("watch=1&resourceVersion={start}")).await;
    let of_team = format!("watch=1&resourceVersion={start}");
    let mut maps = world.watch("/v1/configmaps/team", &of_team).await;
    let mut everywhere = world.watch("/v1/configmaps", &of_team).await;
    for neighbour in ["team-a", "tea", "teams"] {
        world.put(path, neighbour, "").await;
        world.put(&format!("/v1/configmaps/{neighbour}"), "other", "").await;
    }
    world.put(path, "team", "on=yes").await;
    world.put("/v1/configmaps/team", "mine", "").await;
    world.delete("/v1/configmaps/team", "mine").await;
    world.put("/v1/configmaps/team", "team", "").await;
    assert_eq!(by_field.told().await, "~team");
    assert_eq!(by_name.told().await, "~team");
    assert_eq!(maps.told().await, "+mine -mine +team");
    assert_eq!(everywhere.told().await, "+other +other +other +mine -mine +team");
    assert_eq!(world.names("/v1/configmaps/team", "").await.0, "team");
    assert_eq!(world.names(path, "fieldSelector=metadata.name%3Dteam").await.0, "team");
    assert_eq!(world.names("/v1/configmaps", "fieldSelector=metadata.namespace%3Dteam").await.0, "team");
}
