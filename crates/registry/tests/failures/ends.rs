//! Memory, and watches that end together: 2, 4, 5 and 6.

use forebay_apimachinery::Reason;
use serde_json::Value;

use crate::store::Way;
use crate::world::{CM, MINUTE, SECRETS, World, rv};

const WATCHES: usize = 100;

/// Its reader takes two hours, in which everything it lists is changed and the history of it forgotten.
#[tokio::test(start_paused = true)]
async fn failure_02_a_list_larger_than_its_timeout_begins_again_for_ever() {
    let world = World::new().await;
    let mut last = 0;
    for number in 100..220 {
        last = world.put(CM, &format!("o-{number}"), "").await;
    }
    let (names, at) = world.names(CM, "").await;
    assert_eq!(at, last);
    let mut list = world.open_list(CM, "").await.expect("lists");
    let mut body = Vec::new();
    let mut chunks = 0;
    while list.next_chunk(64, &mut body) {
        chunks += 1;
        world.put(CM, &format!("o-{}", 100 + chunks % 120), "on=no").await;
        world.pass(MINUTE).await;
    }
    assert!(chunks > 100, "{chunks}");
    let whole: Value = serde_json::from_slice(&body).expect("a whole list");
    let items = whole["items"].as_array().expect("items");
    let listed: Vec<&str> = items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
    assert_eq!((listed.join(" "), rv(&whole)), (names, at), "as of one revision");
    assert!(items.iter().all(|item| item["metadata"]["labels"].is_null()));
}

#[tokio::test(start_paused = true)]
async fn failure_04_a_list_of_any_revision_goes_to_the_store_while_the_cache_fills() {
    let world = World::new().await;
    world.put(CM, "a", "").await;
    let world = world.killed(|faults| faults.range = Way::Silent).await;
    world.settle().await;
    let [_, _, caches] = world.store.called();
    for query in ["resourceVersion=0", "", "limit=1", "resourceVersion=0&limit=500"] {
        let refused = world.list(CM, query).await.expect_err("not filled");
        assert_eq!((refused.reason, refused.retry_after_seconds), (Reason::TooManyRequests, 1), "{query}");
        assert!(refused.message.starts_with("storage is (re)initializing"), "{}", refused.message);
        let refused = world.try_watch(CM, query).await.err().expect("not filled");
        assert_eq!(refused.reason, Reason::TooManyRequests, "watch {query}");
    }
    // The longer it takes, the later they are asked to come again.
    world.pass(MINUTE).await;
    let refused = world.list(CM, "resourceVersion=0").await.expect_err("not filled");
    assert!(refused.retry_after_seconds >= 30, "{:?}", refused.retry_after_seconds);
    let [ranges, _, feeds] = world.store.called();
    assert_eq!([ranges, feeds], [caches, caches], "nothing but the caches reads the state, each once");
    world.set(|faults| faults.range = Way::Open);
    world.settle().await;
    assert_eq!(world.names(CM, "resourceVersion=0").await.0, "a");
}

#[tokio::test(start_paused = true)]
async fn failure_05_watches_without_a_revision_pass_through_to_the_store() {
    let world = World::new().await;
    let at = world.put(CM, "a", "").await;
    world.settle().await;
    let before = world.store.called();
    let mut watches = Vec::new();
    for number in 0..WATCHES {
        let query = ["watch=1", "watch=1&allowWatchBookmarks=true", "watch=1&resourceVersion=0"][number % 3];
        watches.push(world.watch(CM, query).await);
    }
    for watch in &mut watches {
        assert_eq!(watch.told().await.replace(" END", ""), "+a");
        assert_eq!(watch.reached, at);
    }
    world.put(CM, "b", "").await;
    for watch in &mut watches {
        assert_eq!(watch.told().await, "+b");
    }
    assert_eq!(world.store.called()[0], before[0], "no page of the state is read for them");
    assert_eq!(world.store.called()[2], before[2], "no feed is opened for them");
}

#[tokio::test(start_paused = true)]
async fn failure_06_all_watches_end_because_the_store_has_no_leader() {
    let world = World::new().await;
    let start = world.put(CM, "a", "").await;
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        watches.push(
            world.watch(CM, &format!("watch=1&allowWatchBookmarks=true&resourceVersion={start}")).await,
        );
    }
    world.put(CM, "b", "").await;
    // What is current cannot be learnt, feeds bring nothing, and no new one can be had.
    world.set(|faults| {
        faults.barrier = Way::Leaderless;
        faults.feed = Way::Leaderless;
        faults.feeds_stalled = true;
    });
    world.pass(10 * MINUTE).await;
    for watch in &mut watches {
        let told = watch.told().await;
        assert!(told.split(' ').all(|each| each == "+b" || each == "B"), "{told}");
    }
    // A bookmark meanwhile is no newer than what was sent.
    assert!(watches.iter().all(|watch| watch.reached < start + 2), "{}", watches[0].reached);
    let during = world.put(CM, "c", "").await;
    world.set(|faults| *faults = Default::default());
    world.pass(MINUTE).await;
    for watch in &mut watches {
        let told = watch.told().await;
        assert_eq!(told.split(' ').filter(|each| *each != "B").collect::<Vec<_>>(), ["+c"]);
        assert!(watch.reached >= during);
    }
    let list = world.list(SECRETS, "").await.expect("all is well");
    assert!(rv(&list) >= during);
}
