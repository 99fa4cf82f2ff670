//! Too large a resourceVersion, and stale reads: 11 and 13.

use forebay_api::PatchKind;
use forebay_apimachinery::Reason;
use forebay_apimachinery::options::PatchOptions;
use forebay_rt::Duration;
use serde_json::{Value, json};

use crate::store::Way;
use crate::world::{CM, MINUTE, World, rv, shown};

const WAIT: Duration = Duration::from_secs(3);

#[tokio::test(start_paused = true)]
async fn failure_11_a_client_that_has_seen_more_than_this_server() {
    let world = World::new().await;
    let now = world.put(CM, "a", "").await;
    for query in ["", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact", "&limit=1"] {
        let ahead = now + 1;
        let (took, refused) = world.timed(world.list(CM, &format!("resourceVersion={ahead}{query}"))).await;
        let refused = refused.expect_err("not there yet");
        assert!(took >= WAIT && took < WAIT * 2, "{query}: {took:?}");
        assert_eq!((refused.reason, refused.retry_after_seconds), (Reason::Timeout, 1), "{query}");
        assert_eq!(refused.message, format!("Timeout: Too large resource version: {ahead}, current: {now}"));
        assert_eq!(refused.causes[0].reason.as_str(), "ResourceVersionTooLarge");
        assert_eq!(refused.causes[0].message, "Too large resource version");
    }
    // A watch from there waits in silence.
    let mut watch = world.watch(CM, &format!("watch=1&resourceVersion={}", now + 1)).await;
    assert_eq!(watch.told().await, "");
    // It heals by itself: what comes within the wait is waited for, and the watch is told what is after its
    // revision.
    let path = format!("resourceVersion={}", now + 1);
    let (list, written) = tokio::join!(world.list(CM, &path), world.put(CM, "b", ""));
    assert_eq!((rv(&list.expect("in time")), written), (now + 1, now + 1));
    world.put(CM, "c", "").await;
    assert_eq!(watch.told().await, "+c");
}

/// A kubelet restarts, lists at a server that is cut off, and starts a pod that was deleted.
#[tokio::test(start_paused = true)]
async fn failure_13_a_read_is_older_than_what_its_client_has_seen() {
    let world = World::new().await;
    let before = world.put(CM, "deleted", "").await;
    world.settle().await;
    world.set(|faults| faults.feeds_stalled = true);
    world.delete(CM, "deleted").await;
    let seen = world.put(CM, "new", "").await;

    // What asks for the latest state is told that it cannot be shown, and does not wait for it one after the
    // other.
    let (took, refused) = world.timed(world.list(CM, "")).await;
    let refused = refused.expect_err("cannot be proved");
    assert_eq!((refused.reason, took >= WAIT), (Reason::TooManyRequests, true));
    assert!((1..=8).contains(&refused.retry_after_seconds), "{refused:?}");
    let (took, refused) = world.timed(world.list(CM, "")).await;
    assert_eq!(
        (refused.expect_err("cannot be proved").reason, took),
        (Reason::TooManyRequests, Duration::ZERO)
    );
    let refused = world.try_watch(CM, "watch=1").await.err().expect("cannot be proved");
    assert_eq!(refused.reason, Reason::TooManyRequests);
    // What names a revision is never answered behind it.
    let refused = world.list(CM, &format!("resourceVersion={seen}")).await.expect_err("not there");
    assert_eq!(refused.reason, Reason::Timeout);
    let refused = world.get(&format!("{CM}/new"), &seen.to_string()).await.expect_err("not there");
    assert_eq!(refused.reason, Reason::Timeout);
    // One object is read from the store itself: leases must renew.
    let [ranges, gets, _] = world.store.called();
    assert_eq!(rv(&world.get(&format!("{CM}/new"), "").await.expect("from the store")), seen);
    assert_eq!(world.get(&format!("{CM}/deleted"), "").await.expect_err("gone").reason, Reason::NotFound);
    assert_eq!(world.store.called()[..2], [ranges, gets + 2]);
    // Who asks for any state gets what there is, and its revision says what it is.
    assert_eq!(world.names(CM, "resourceVersion=0").await, ("deleted".to_string(), before));

    world.set(|faults| faults.feeds_stalled = false);
    world.pass(MINUTE).await;
    assert_eq!(world.names(CM, "").await, ("new".to_string(), seen));
    assert_eq!(world.names(CM, &format!("resourceVersion={seen}")).await.0, "new");
}

/// The same while the store itself does not answer.
#[tokio::test(start_paused = true)]
async fn failure_13_a_store_that_does_not_answer_makes_no_read_stale_and_none_hang() {
    let world = World::new().await;
    world.put(CM, "a", "").await;
    world.set(|faults| faults.barrier = Way::Silent);
    let (took, refused) = world.timed(world.list(CM, "")).await;
    assert_eq!((refused.expect_err("no proof").reason, took), (Reason::TooManyRequests, WAIT));
    world.set(|faults| faults.barrier = Way::Open);
    world.pass(MINUTE).await;
    assert_eq!(world.names(CM, "").await.0, "a");
}

/// What a dry run shows is what its client has just written, changed once more: no commit finds out that the
/// cached object is an old one.
#[tokio::test(start_paused = true)]
async fn failure_13_a_dry_run_is_of_the_object_that_is_there() {
    let world = World::new().await;
    world.put(CM, "a", "").await;
    world.settle().await;
    world.set(|faults| faults.feeds_stalled = true);
    let seen = world.put(CM, "a", "written=yes").await;
    let target = world.target(&format!("{CM}/a"));
    let patch = json!({ "metadata": { "labels": { "tried": "yes" } } }).to_string();
    let options = PatchOptions { dry_run: true, ..PatchOptions::default() };
    let tried = shown(world.registry.patch(&target, PatchKind::Merge, patch.as_bytes(), &options).await);
    assert_eq!(tried["metadata"]["labels"], json!({ "written": "yes", "tried": "yes" }));
    assert_eq!(rv(&tried), seen);
    let there = world.get(&format!("{CM}/a"), "").await.expect("from the store");
    assert_eq!(there["metadata"]["labels"], json!({ "written": "yes" }));
}

/// Another server has made the namespace a moment ago.
#[tokio::test(start_paused = true)]
async fn failure_13_the_level_of_a_namespace_that_is_not_cached_yet_is_that_of_the_store() {
    let world = World::new().await;
    world.settle().await;
    world.set(|faults| faults.feeds_stalled = true);
    let levels = json!({
        "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted",
    });
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "new", "labels": levels },
    });
    world.create("/v1/namespaces", namespace).await.expect("creates");
    let pod = |name: &str, security: Value| {
        let container = json!({ "name": "c", "image": "i", "securityContext": security });
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": { "containers": [container] },
        })
    };
    let plain = world.create("/v1/pods/new", pod("plain", json!({}))).await;
    let (_, told) = plain.expect("its level is known");
    assert!(told[0].starts_with("would violate PodSecurity \"restricted:latest\""), "{told:?}");
    let privileged = pod("privileged", json!({ "privileged": true }));
    let refused = world.create("/v1/pods/new", privileged).await.expect_err("it has a level");
    assert_eq!(refused.reason, Reason::Forbidden);
    assert!(refused.message.contains("violates PodSecurity \"baseline:latest\""), "{}", refused.message);
}
