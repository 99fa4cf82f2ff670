//! The contract, on a store in memory and on a real directory.

mod common;

use std::time::Duration;

use common::{at, del, drain, key, options, put, put_ttl, show};
use forebay_apimachinery::Revision;
use forebay_backend::{Backend, Expect, FeedError, Range, ReadError, TxnError, TxnResponse};
use forebay_embedded::limits::RANGE_BYTES_MAX;
use forebay_embedded::{Disk, Engine, OpenError, Options, Syncs};
use forebay_rt::Clock;
use forebay_scratch::Scratch;

fn range(prefix: &str, limit: usize, at: Option<u64>) -> Range {
    Range { prefix: key(prefix), start_after: None, limit, at: at.and_then(Revision::new) }
}

#[tokio::test]
async fn a_txn_commits_when_what_it_expects_holds_and_says_what_is_there_when_not() {
    let store = Engine::open_in_memory(Options::default()).expect("opens");
    assert_eq!(store.barrier().await.expect("open"), Revision::FIRST);
    let cases = [
        (put("/a/x", Expect::Absent, "1"), "committed 2"),
        (put("/a/x", Expect::Absent, "2"), "conflict 1@2"),
        (put("/a/x", at(9), "2"), "conflict 1@2"),
        (put("/a/x", at(2), "2"), "committed 3"),
        (del("/a/x", at(2)), "conflict 2@3"),
        (del("/a/x", at(3)), "committed 4"),
        (del("/a/x", at(3)), "conflict -"),
        (put("/a/x", at(4), "3"), "conflict -"),
        (put("/a/x", Expect::Absent, "3"), "committed 5"),
        (del("/b", Expect::Absent), "committed 6"),
    ];
    for (txn, expected) in cases {
        let outcome = store.commit(txn.clone()).await.expect("works");
        assert_eq!(show(&outcome), expected, "{txn:?}");
    }
    assert_eq!(store.barrier().await.expect("open").get(), 6);
    let found = store.get(&key("/a/x")).await.expect("open").expect("there");
    assert_eq!((found.revision.get(), &found.value[..]), (5, &b"3"[..]));
    assert_eq!(store.get(&key("/b")).await.expect("open"), None);
    assert_eq!(store.size().keys, 1);
}

#[tokio::test]
async fn concurrent_txns_on_one_key_commit_one_after_the_other() {
    let store = Engine::open_in_memory(Options::default()).expect("opens");
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                store.commit(put("/a", Expect::Absent, &n.to_string())).await.expect("works")
            })
        })
        .collect();
    let mut committed = Vec::new();
    let mut refused = Vec::new();
    for task in tasks {
        match task.await.expect("ends") {
            TxnResponse::Committed(revision) => committed.push(revision.get()),
            TxnResponse::Conflict(there) => refused.push(there.expect("the winner's").revision.get()),
        }
    }
    assert_eq!((committed, refused), (vec![2], vec![2; 63]));
}

#[tokio::test]
async fn a_range_pages_through_a_prefix_now_and_as_of_older_revisions() {
    let store = Engine::open_in_memory(Options::default()).expect("opens");
    for (name, value) in [("/a/1", "x"), ("/a/2", "x"), ("/a/3", "x"), ("/ab", "x"), ("/b/1", "x")] {
        store.commit(put(name, Expect::Absent, value)).await.expect("works");
    }
    store.commit(put("/a/1", at(2), "y")).await.expect("works");
    store.commit(del("/a/2", at(3))).await.expect("works");
    let list = async |range: Range| {
        let page = store.range(range).await?;
        let items: Vec<_> = page
            .items
            .iter()
            .map(|(key, found)| format!("{key}={}@{}", String::from_utf8_lossy(&found.value), found.revision))
            .collect();
        Ok::<_, ReadError>(format!("{} {} {}", page.revision, items.join(" "), page.more))
    };
    assert_eq!(list(range("/a/", 10, None)).await.expect("works"), "8 /a/1=y@7 /a/3=x@4 false");
    assert_eq!(list(range("/a/", 1, None)).await.expect("works"), "8 /a/1=y@7 true");
    assert_eq!(list(range("/a/", 10, Some(4))).await.expect("works"), "4 /a/1=x@2 /a/2=x@3 /a/3=x@4 false");
    assert_eq!(list(range("/a/", 10, Some(1))).await.expect("works"), "1  false");
    for (at, prefix, expected) in [(None, "/a/", 2), (Some(4), "/a/", 3), (Some(1), "/a/", 0), (None, "/", 4)]
    {
        assert_eq!(store.count(range(prefix, 1, at)).await.expect("works"), expected, "{prefix} {at:?}");
    }
    let next = Range { start_after: Some(key("/a/1")), ..range("/a/", 1, Some(4)) };
    assert_eq!(store.count(next.clone()).await.expect("works"), 2);
    assert_eq!(list(next).await.expect("works"), "4 /a/2=x@3 true");
    assert_eq!(list(range("/c/", 1, None)).await.expect("works"), "8  false");
    let future = list(range("/a/", 1, Some(9))).await.expect_err("not yet");
    assert!(matches!(future, ReadError::Future { asked, current } if (asked.get(), current.get()) == (9, 8)));
}

#[tokio::test]
async fn a_page_of_large_values_is_short_and_says_that_there_are_more() {
    let store = Engine::open_in_memory(Options::default()).expect("opens");
    let (large, keys) = ("x".repeat(RANGE_BYTES_MAX / 4), 11);
    for number in 0..keys {
        store.commit(put(&format!("/a/{number:02}"), Expect::Absent, &large)).await.expect("works");
    }
    let (mut found, mut after, mut pages) = (Vec::new(), None, Vec::new());
    loop {
        let page = store.range(Range { start_after: after, ..range("/a/", 100, None) }).await.expect("works");
        pages.push(page.items.len());
        found.extend(page.items.iter().map(|(key, _)| key.clone()));
        after = found.last().cloned();
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, [4, 4, 3]);
    assert_eq!(found, (0..keys).map(|number| key(&format!("/a/{number:02}"))).collect::<Vec<_>>());
    let all = store.range(range("/a/", 4, None)).await.expect("works");
    assert!(all.items.len() == 4 && all.more);
}

#[tokio::test]
async fn a_feed_yields_history_and_then_what_is_committed() {
    let store = Engine::open_in_memory(Options::default()).expect("opens");
    store.commit(put("/a/1", Expect::Absent, "x")).await.expect("works");
    store.commit(put("/b/1", Expect::Absent, "x")).await.expect("works");
    store.commit(del("/a/1", at(2))).await.expect("works");
    let mut from_start = store.feed("/a/", Revision::FIRST).await.expect("kept");
    let mut from_two = store.feed("/a/", Revision::from_log(2)).await.expect("kept");
    let mut everything = store.feed("/", Revision::FIRST).await.expect("kept");
    let mut future = store.feed("/a/", Revision::from_log(6)).await.expect("will come");
    store.commit(put("/a/2", Expect::Absent, "y")).await.expect("works");
    store.commit(put("/b/2", Expect::Absent, "y")).await.expect("works");
    assert_eq!(drain(&mut from_start), "/a/1=x@2 /a/1=-@4 progress 4 /a/2=y@5 progress 6");
    assert_eq!(drain(&mut from_two), "/a/1=-@4 progress 4 /a/2=y@5 progress 6");
    assert_eq!(drain(&mut everything), "/a/1=x@2 /b/1=x@3 /a/1=-@4 progress 4 /a/2=y@5 /b/2=y@6");
    assert_eq!(drain(&mut future), "");
    store.commit(put("/a/3", Expect::Absent, "z")).await.expect("works");
    for feed in [&mut from_start, &mut future] {
        tokio::time::timeout(Duration::from_secs(60), feed.ready()).await.expect("woken");
        assert_eq!(drain(feed), "/a/3=z@7");
    }
    store.close();
    assert!(matches!(from_start.take(9, &mut Vec::new()), Err(FeedError::Closed)));
    assert!(matches!(store.commit(del("/a/3", at(7))).await, Err(TxnError::Closed)));
    assert!(matches!(store.get(&key("/a/3")).await, Err(ReadError::Closed)));
    assert!(matches!(store.feed("/a/", Revision::FIRST).await, Err(FeedError::Closed)));
}

#[tokio::test]
async fn a_feed_reaches_every_barrier() {
    let store = Engine::open_in_memory(Options::default()).expect("opens");
    let mut feed = store.feed("/quiet/", Revision::FIRST).await.expect("kept");
    for n in 0..50 {
        store.commit(put(&format!("/busy/{n}"), Expect::Absent, "x")).await.expect("works");
        let barrier = store.barrier().await.expect("open");
        assert_eq!(drain(&mut feed), format!("progress {barrier}"));
    }
}

#[tokio::test]
async fn keys_expire_together_at_their_time_as_deletes() {
    let (clock, hand) = Clock::manual(1_000_000);
    let store = Engine::open_in_memory(options(&clock)).expect("opens");
    let mut feed = store.feed("/", Revision::FIRST).await.expect("kept");
    for name in ["/a", "/b", "/c", "/d"] {
        store.commit(put_ttl(name, Expect::Absent, "x", 1000)).await.expect("works");
    }
    store.commit(put("/c", at(4), "stays")).await.expect("works");
    store.commit(put_ttl("/d", at(5), "longer", 2000)).await.expect("works");
    hand.advance_ms(999);
    store.settle().await;
    assert_eq!(store.size().keys, 4);
    hand.advance_ms(1);
    store.settle().await;
    assert_eq!(drain(&mut feed), "/a=x@2 /b=x@3 /c=x@4 /d=x@5 /c=stays@6 /d=longer@7 /a=-@8 /b=-@8");
    hand.advance_ms(1000);
    store.settle().await;
    assert_eq!(drain(&mut feed), "/d=-@9");
    assert_eq!(store.get(&key("/d")).await.expect("open"), None);
}

#[tokio::test]
async fn expiries_survive_a_restart_and_overdue_ones_come_right_after_it() {
    let scratch = Scratch::new();
    let (clock, hand) = Clock::manual(1_000_000);
    let store = Engine::open(scratch.path(), options(&clock)).expect("opens");
    store.commit(put_ttl("/a", Expect::Absent, "x", 1000)).await.expect("works");
    store.commit(put_ttl("/b", Expect::Absent, "x", 5000)).await.expect("works");
    drop(store);
    hand.advance_ms(2000);
    let store = Engine::open(scratch.path(), options(&clock)).expect("opens");
    store.settle().await;
    let mut feed = store.feed("/", Revision::from_log(3)).await.expect("kept");
    hand.advance_ms(3000);
    store.settle().await;
    assert_eq!(drain(&mut feed), "/a=-@4 progress 4 /b=-@5");
}

#[tokio::test]
async fn a_store_without_syncs_is_a_store_all_the_same() {
    let scratch = Scratch::new();
    let (clock, _) = Clock::manual(1_000_000);
    let unsynced = || Options { syncs: Syncs::Never, ..options(&clock) };
    let store = Engine::open(scratch.path(), unsynced()).expect("opens");
    store.commit(put("/a", Expect::Absent, "x")).await.expect("works");
    drop(store);
    let opened = Engine::open(scratch.path(), unsynced()).expect("opens");
    let found = opened.get(&key("/a")).await.expect("open").expect("there");
    assert_eq!(found.value, "x");
    drop(opened);
    let synced = Engine::open(scratch.path(), options(&clock)).expect("opens with syncs, too");
    synced.commit(put("/b", Expect::Absent, "y")).await.expect("works");
}

#[tokio::test]
async fn history_is_kept_for_its_time_and_then_compacted() {
    let (clock, hand) = Clock::manual(1_000_000);
    let store = Engine::open_in_memory(options(&clock)).expect("opens");
    let mut slow = store.feed("/", Revision::FIRST).await.expect("kept");
    store.commit(put("/a", Expect::Absent, "1")).await.expect("works");
    store.commit(put("/b", Expect::Absent, "1")).await.expect("works");
    store.commit(put("/a", at(2), "2")).await.expect("works");
    store.commit(del("/b", at(3))).await.expect("works");
    hand.advance_ms(common::MARK_EVERY_MS);
    store.settle().await;
    hand.advance_ms(common::HISTORY_MS - 1);
    store.settle().await;
    assert_eq!(store.oldest().await.expect("open"), Revision::FIRST);
    assert_eq!(store.range(range("/", 9, Some(3))).await.expect("kept").items.len(), 2);
    hand.advance_ms(1);
    store.settle().await;
    assert_eq!(store.oldest().await.expect("open").get(), 5);
    let gone = store.count(range("/", 9, Some(4))).await.expect_err("compacted");
    assert!(matches!(gone, ReadError::Compacted { .. }), "{gone:?}");
    let gone = store.range(range("/", 9, Some(4))).await.expect_err("compacted");
    assert!(matches!(gone, ReadError::Compacted { asked, oldest } if (asked.get(), oldest.get()) == (4, 5)));
    assert!(
        matches!(store.feed("/other/", Revision::from_log(4)).await, Err(FeedError::Compacted { oldest }) if oldest.get() == 5)
    );
    let page = store.range(range("/", 9, Some(5))).await.expect("kept");
    assert_eq!(page.items.len(), 1);
    assert_eq!((&page.items[0].1.value[..], page.items[0].1.revision.get()), (&b"2"[..], 4));
    let lagging = slow.take(9, &mut Vec::new());
    assert!(matches!(lagging, Err(FeedError::Compacted { oldest }) if oldest.get() == 4), "{lagging:?}");
}

#[tokio::test]
async fn everything_is_there_after_a_restart_and_revisions_go_on() {
    let scratch = Scratch::new();
    let store = Engine::open(scratch.path(), Options::default()).expect("opens");
    store.commit(put("/a", Expect::Absent, &"long ".repeat(1000))).await.expect("works");
    store.commit(put("/b", Expect::Absent, "1")).await.expect("works");
    store.commit(del("/b", at(3))).await.expect("works");
    store.close();
    let store = Engine::open(scratch.path(), Options::default()).expect("opens again");
    let mut feed = store.feed("/", Revision::FIRST).await.expect("kept");
    assert_eq!(drain(&mut feed).matches("long ").count(), 1000);
    assert_eq!(store.barrier().await.expect("open").get(), 4);
    let outcome = store.commit(put("/b", Expect::Absent, "2")).await.expect("works");
    assert_eq!(show(&outcome), "committed 5");
}

#[tokio::test]
async fn revisions_go_on_when_everything_was_deleted_and_compacted() {
    let scratch = Scratch::new();
    let (clock, hand) = Clock::manual(1_000_000);
    let store = Engine::open(scratch.path(), options(&clock)).expect("opens");
    for n in 0..20 {
        store.commit(put(&format!("/{n}"), Expect::Absent, "x")).await.expect("works");
        store.commit(del(&format!("/{n}"), at(2 + 2 * n))).await.expect("works");
    }
    hand.advance_ms(common::MARK_EVERY_MS);
    store.settle().await;
    hand.advance_ms(common::HISTORY_MS);
    store.settle().await;
    assert_eq!(store.size().live_bytes, 0);
    drop(store);
    let store = Engine::open(scratch.path(), options(&clock)).expect("opens again");
    assert_eq!(store.barrier().await.expect("open").get(), 41);
    assert_eq!(store.oldest().await.expect("open").get(), 41);
    let outcome = store.commit(put("/1", Expect::Absent, "x")).await.expect("works");
    assert_eq!(show(&outcome), "committed 42");
}

#[tokio::test]
async fn whoever_still_waits_when_the_writer_ends_is_told_that_the_store_is_closed() {
    let (store, stepper) = Engine::open_stepped(Disk::in_memory(), Options::default()).expect("opens");
    let waiting = store.clone();
    let waiting = tokio::spawn(async move { waiting.commit(put("/a", Expect::Absent, "x")).await });
    tokio::task::yield_now().await;
    drop(stepper);
    assert!(matches!(waiting.await.expect("no panic"), Err(TxnError::Closed)));
    assert!(matches!(store.commit(put("/a", Expect::Absent, "x")).await, Err(TxnError::Closed)));
}

#[tokio::test]
async fn a_directory_is_held_by_one_engine_at_a_time() {
    let scratch = Scratch::new();
    let store = Engine::open(scratch.path(), Options::default()).expect("opens");
    let refused = Engine::open(scratch.path(), Options::default()).expect_err("held");
    assert!(
        matches!(refused, OpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()),
        "{refused}"
    );
    store.close();
    Engine::open(scratch.path(), Options::default()).expect("free again");
}

#[tokio::test]
async fn what_cannot_be_a_store_is_refused_by_name() {
    let scratch = Scratch::new();
    let file = scratch.path().join("file");
    std::fs::write(&file, "text").expect("writable");
    assert!(matches!(Engine::open(&file, Options::default()), Err(OpenError::NotADirectory { .. })));
    assert!(matches!(
        Engine::open(&file.join("below"), Options::default()),
        Err(OpenError::NotADirectory { .. })
    ));
    let other = scratch.path().join("other");
    std::fs::create_dir(&other).expect("writable");
    std::fs::write(other.join("store.redb"), "not a store").expect("writable");
    assert!(matches!(Engine::open(&other, Options::default()), Err(OpenError::Corrupt { .. })));
    std::fs::write(other.join("store.redb"), "").expect("writable");
    assert!(matches!(Engine::open(&other, Options::default()), Err(OpenError::Corrupt { .. })));
}

#[tokio::test]
async fn a_value_above_the_limit_is_refused() {
    let store = Engine::open_in_memory(Options::default()).expect("opens");
    let value = "x".repeat(forebay_embedded::limits::VALUE_BYTES_MAX);
    let outcome = store.commit(put("/a", Expect::Absent, &value)).await.expect("just fits");
    assert_eq!(show(&outcome), "committed 2");
    let refused = store.commit(put("/b", Expect::Absent, &(value + "x"))).await;
    assert!(matches!(refused, Err(TxnError::TooLarge { .. })));
    let long = "/".repeat(forebay_embedded::limits::KEY_BYTES_MAX + 1);
    assert!(matches!(store.commit(put(&long, Expect::Absent, "x")).await, Err(TxnError::Failed { .. })));
}

#[tokio::test]
async fn compaction_leaves_only_what_is_live_and_gives_the_space_back() {
    let scratch = Scratch::new();
    let (clock, hand) = Clock::manual(1_000_000);
    let store = Engine::open(&scratch.path().join("churned"), options(&clock)).expect("opens");
    let fresh = Engine::open(&scratch.path().join("fresh"), options(&clock)).expect("opens");
    let random = forebay_rt::Random::seeded(1);
    // Hexadecimal digits of random numbers: about half of it compresses.
    let value = || (0..600).map(|_| format!("{:016x}", random.next_u64())).collect::<String>();
    let mut held = [Expect::Absent; 20];
    let mut last = Vec::new();
    for _ in 0..400 {
        let round: Vec<_> = (0..held.len()).map(|n| (format!("/registry/{n}"), value())).collect();
        let txns = round.iter().zip(held).map(|((name, value), expect)| {
            let (store, txn) = (store.clone(), put(name, expect, value));
            tokio::spawn(async move { store.commit(txn).await.expect("works") })
        });
        for (n, task) in txns.collect::<Vec<_>>().into_iter().enumerate() {
            let TxnResponse::Committed(revision) = task.await.expect("no panic") else {
                panic!("one writer a key")
            };
            held[n] = Expect::At(revision);
        }
        last = round;
    }
    for (name, value) in &last {
        fresh.commit(put(name, Expect::Absent, value)).await.expect("works");
    }
    hand.advance_ms(common::MARK_EVERY_MS);
    store.settle().await;
    let before = store.size();
    hand.advance_ms(common::HISTORY_MS);
    store.settle().await;
    assert_eq!(store.size().live_bytes, fresh.size().live_bytes, "no garbage is left");
    assert!(before.live_bytes > 300 * store.size().live_bytes, "{before:?}");
    let size = store.size();
    assert!(size.file_bytes <= 2 * size.live_bytes + common::SLACK_BYTES, "{size:?}");
    store.close();
    let store = Engine::open(&scratch.path().join("churned"), options(&clock)).expect("opens again");
    for (name, value) in &last {
        let found = store.get(&key(name)).await.expect("open").expect("there");
        assert_eq!(found.value, value.as_bytes());
    }
}
