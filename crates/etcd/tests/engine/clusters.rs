//! When another cluster answers than before: a backup that was restored as one of its own, or endpoints of
//! two.

use forebay_apimachinery::Revision;
use forebay_backend::{Backend, Expect, FeedError, ReadError};
use forebay_clients::etcd::{Cluster, ClusterToken, Security};
use forebay_clients::needs;
use forebay_etcd::{Etcd, TlsFiles, limits};
use forebay_rt::Clock;

use crate::{WAIT, committed, ended, open, open_at, put, range, told};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_that_is_another_cluster_ends_each_feed_once_and_is_followed_then() {
    if needs::built_peers().is_none() {
        return;
    }
    let mut cluster = Cluster::start(1, Security::Plain).expect("starts");
    let store = open(&cluster);
    store.reach(WAIT).await.expect("answers");
    let base = store.barrier().await.expect("open");
    committed(&store, put("/a/1", Expect::Absent, "x")).await;
    let backed_up = committed(&store, put("/a/2", Expect::Absent, "x")).await;
    // etcd writes its file now and then; this has it do so.
    cluster.defragment().expect("all of it is in the file");
    cluster.back_up().expect("backed up");
    store.reach(WAIT).await.expect("answers again");
    let last = committed(&store, put("/a/3", Expect::Absent, "lost")).await;

    let mut followed = store.feed("/a/", base).await.expect("kept");
    let mut quiet = store.feed("/b/", last).await.expect("kept");
    assert_eq!(told(&mut followed, base, last).await, "/a/1=x@1 /a/2=x@2 /a/3=lost@3");
    // One whose reader has left without a word, one whose state alone was read, and one whose state is half
    // read.
    drop(store.feed("/left/", last).await.expect("kept"));
    store.pages(range("/read/", 9, Some(last))).next(9).await.expect("kept");
    let mut half = store.pages(range("/a/", 1, Some(backed_up)));
    assert!(half.next(1).await.expect("kept").more);

    cluster.restore(None, ClusterToken::New).expect("restored");
    store.reach(WAIT).await.expect("the other one answers");
    assert_eq!(store.barrier().await.expect("open"), backed_up);
    for feed in [&mut followed, &mut quiet] {
        let end = ended(feed).await;
        assert!(
            matches!(end, FeedError::WentBack { reached, current } if (reached, current) == (last, backed_up)),
            "{end}"
        );
    }
    let rest = half.next(1).await;
    assert!(matches!(rest, Err(ReadError::Unanswered { .. })), "of two clusters: {rest:?}");
    for (prefix, tells) in [("/left/", true), ("/read/", true), ("/b/", false), ("/new/", false)] {
        assert_eq!(is_told(&store, prefix, backed_up).await, tells, "{prefix}");
    }
    let mut again = store.feed("/a/", base).await.expect("told before");
    let written = committed(&store, put("/a/3", Expect::Absent, "kept")).await;
    assert_eq!(told(&mut again, base, written).await, "/a/1=x@1 /a/2=x@2 /a/3=kept@3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn endpoints_of_two_clusters_are_not_taken_in_turn_without_a_pause() {
    if needs::built_peers().is_none() {
        return;
    }
    let mut first = Cluster::start(1, Security::Plain).expect("starts");
    let mut second = Cluster::start(1, Security::Plain).expect("starts");
    let store = open_at(&[first.endpoints(), second.endpoints()].concat(), TlsFiles::default(), None);
    store.reach(WAIT).await.expect("answers");
    let mut feed = store.feed("/a/", Revision::FIRST).await.expect("kept");
    let begun = Clock::system().now();
    first.kill(0).expect("killed");
    let end = ended(&mut feed).await;
    assert!(matches!(end, FeedError::WentBack { .. }), "{end}");
    store.reach(WAIT).await.expect("the second answers");
    let mut feed = store.feed("/a/", Revision::FIRST).await.expect("told before");
    let written = committed(&store, put("/a/1", Expect::Absent, "second")).await;
    assert_eq!(told(&mut feed, Revision::FIRST, written).await, "/a/1=second@1");

    first.restart(0).expect("back");
    second.kill(0).expect("killed");
    store.reach(WAIT).await.expect("the first answers in the end");
    assert!(Clock::system().now() - begun >= limits::CLUSTER_HOLD.0, "at once");
    let end = ended(&mut feed).await;
    assert!(matches!(end, FeedError::WentBack { .. }), "{end}");
    assert!(!first.has("/a/1").expect("read"), "nothing was mixed");
}

/// Whether a feed of `prefix` is told first that the store went back; the next one is not.
async fn is_told(store: &Etcd, prefix: &str, after: Revision) -> bool {
    match store.feed(prefix, after).await {
        Ok(_) => false,
        Err(FeedError::WentBack { .. }) => {
            store.feed(prefix, after).await.expect("told once");
            true
        }
        Err(error) => panic!("{prefix}: {error}"),
    }
}
