//! The contract of a store, on a real etcd. What `embedded` is held against on a clock of the test's own is
//! held against here on etcd's.

mod clusters;
mod compaction;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, Expect, Feed, FeedError, FeedStep, Op, Range, ReadError, Txn, TxnError, TxnResponse,
};
use forebay_clients::etcd::{Cluster, Security, Series};
use forebay_clients::needs;
use forebay_etcd::{Etcd, StorageConfig, TlsFiles, Verbatim, limits};
use forebay_rt::{Clock, Tasks};

const WAIT: Duration = Duration::from_secs(120);

fn open(cluster: &Cluster) -> Arc<Etcd> {
    let read = |name| std::fs::read_to_string(cluster.dir().join(name)).expect("written");
    let tls = match cluster.dir().join("ca.crt").exists() {
        true => {
            let client = Some((read("client.crt"), read("client.key")));
            TlsFiles { ca: Some(read("ca.crt")), client, reread: None }
        }
        false => TlsFiles::default(),
    };
    open_as(cluster, tls)
}

fn open_as(cluster: &Cluster, tls: TlsFiles) -> Arc<Etcd> {
    open_with(cluster, tls, None)
}

fn open_with(cluster: &Cluster, tls: TlsFiles, compact_every: Option<Duration>) -> Arc<Etcd> {
    open_at(&cluster.endpoints(), tls, compact_every)
}

fn open_at(urls: &[String], tls: TlsFiles, compact_every: Option<Duration>) -> Arc<Etcd> {
    let endpoints = urls.iter().map(|url| url.parse().expect("a URL")).collect();
    let (clock, tasks) = (Clock::system(), Tasks::new());
    let (codec, prefix) = (Arc::new(Verbatim), "/registry".to_string());
    Etcd::open(StorageConfig { endpoints, tls, codec, prefix, compact_every, clock, tasks }).expect("valid")
}

fn key(text: &str) -> Key {
    Key::new(text)
}

fn at(revision: Revision) -> Expect {
    Expect::At(revision)
}

fn put(name: &str, expect: Expect, value: &str) -> Txn {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Txn { key: key(name), expect, op: Op::Put { value, ttl: None } }
}

fn del(name: &str, expect: Expect) -> Txn {
    Txn { key: key(name), expect, op: Op::Delete }
}

async fn committed(store: &Etcd, txn: Txn) -> Revision {
    match store.commit(txn).await.expect("works") {
        TxnResponse::Committed(revision) => revision,
        conflict => panic!("{conflict:?}"),
    }
}

/// Runs `test` on every version of etcd at the same time: most of it is waiting.
async fn on_every_etcd<F: Future<Output = ()> + Send + 'static>(test: fn(Series) -> F) {
    if needs::built_peers().is_none() {
        return;
    }
    let running = Series::ALL.map(|series| (series, tokio::spawn(test(series))));
    for (series, run) in running {
        run.await.unwrap_or_else(|why| panic!("on etcd {series:?}: {why}"));
    }
}

/// Revisions are told as how far they are from the first of the test.
fn show(outcome: &TxnResponse, base: Revision) -> String {
    match outcome {
        TxnResponse::Committed(revision) => format!("committed {}", revision.get() - base.get()),
        TxnResponse::Conflict(None) => "conflict -".to_string(),
        TxnResponse::Conflict(Some(there)) => {
            let value = String::from_utf8_lossy(&there.value);
            format!("conflict {value}@{}", there.revision.get() - base.get())
        }
    }
}

/// What a feed tells until it has told everything up to `upto`.
async fn told(feed: &mut Feed, base: Revision, upto: Revision) -> String {
    let mut out = Vec::new();
    let mut reached = base;
    feed.hasten(upto);
    while reached < upto {
        let mut changes = Vec::new();
        match feed.take(9, &mut changes).expect("kept") {
            FeedStep::Changes => {
                let show = |change: &forebay_backend::Change| {
                    let value = change.value.as_ref().map_or("-".into(), |v| String::from_utf8_lossy(v));
                    format!("{}={value}@{}", change.key, change.revision.get() - base.get())
                };
                out.extend(changes.iter().map(show));
                reached = changes.last().expect("some").revision;
            }
            FeedStep::Progress(revision) => {
                assert!(revision > reached, "progress goes on");
                reached = revision;
            }
            FeedStep::Idle => tokio::time::timeout(WAIT, feed.ready()).await.expect("woken"),
        }
    }
    out.join(" ")
}

async fn ended(feed: &mut Feed) -> FeedError {
    let end = async {
        loop {
            feed.ready().await;
            if let Err(error) = feed.take(9, &mut Vec::new()) {
                return error;
            }
        }
    };
    tokio::time::timeout(WAIT, end).await.expect("ends")
}

fn range(prefix: &str, limit: usize, at: Option<Revision>) -> Range {
    Range { prefix: key(prefix), start_after: None, limit, at }
}

async fn list(store: &Etcd, range: Range, base: Revision) -> Result<String, ReadError> {
    let page = store.range(range).await?;
    let show = |(key, found): &(Key, forebay_backend::Versioned)| {
        let value = String::from_utf8_lossy(&found.value);
        format!("{key}={value}@{}", found.revision.get() - base.get())
    };
    let items: Vec<_> = page.items.iter().map(show).collect();
    Ok(format!("{} {} {}", page.revision.get() - base.get(), items.join(" "), page.more))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_on_etcd_keeps_the_contract() {
    on_every_etcd(keeps_the_contract).await;
}

async fn keeps_the_contract(series: Series) {
    // With client certificates, so that all of it is shown to work with them.
    let cluster = Cluster::start_of(series, 1, Security::Mutual).expect("starts");
    let store = open(&cluster);
    store.reach(WAIT).await.expect("answers");
    assert_eq!(store.failure(), None);
    txns(&store).await;
    ranges(&store).await;
    feeds(&store).await;
    barriers(&store).await;
    sizes(&store).await;

    let (dir, ca) = (cluster.dir().to_owned(), std::fs::read_to_string(cluster.dir().join("ca.crt")).ok());
    let read = move |name| std::fs::read_to_string(dir.join(name)).map_err(|error| error.to_string());
    let of_late = move || {
        let client = Some((read("late.crt")?, read("late.key")?));
        Ok::<_, String>(TlsFiles { ca: read("ca.crt").ok(), client, reread: None })
    };
    let stranger = TlsFiles { ca, client: None, reread: Some(Arc::new(of_late)) };
    // At once, however long it would have waited.
    let stranger = open_as(&cluster, stranger);
    let refused = stranger.reach(WAIT * 1_000).await.expect_err("nobody is let in without a certificate");
    let why = refused.to_string();
    assert!(why.starts_with("etcd does not let us in: https://") && why.contains("Certificate"), "{why}");
    // Of one that is running already nothing is lost by that: another member, or this one later, may let it
    // in.
    let read = stranger.get(&key("/a/x")).await;
    assert!(matches!(read, Err(ReadError::Unanswered { .. })), "{read:?}");
    let written = stranger.commit(put("/a/x", Expect::Absent, "1")).await;
    assert!(matches!(written, Err(TxnError::Unanswered { .. })), "{written:?}");
    // Nor does one have to be started again that is given a certificate late.
    for (from, to) in [("client.crt", "late.crt"), ("client.key", "late.key")] {
        std::fs::copy(cluster.dir().join(from), cluster.dir().join(to)).expect("copied");
    }
    let (clock, begun) = (Clock::system(), Clock::system().now());
    while let Err(why) = stranger.reach(WAIT).await {
        assert!(clock.now() - begun < WAIT, "{why}");
        clock.sleep(limits::CONNECT_HOLD).await;
    }
}

async fn txns(store: &Etcd) {
    let base = store.barrier().await.expect("open");
    let here = |n: u64| at(Revision::from_log(base.get() + n));
    let cases = [
        (put("/a/x", Expect::Absent, "1"), "committed 1"),
        (put("/a/x", Expect::Absent, "2"), "conflict 1@1"),
        (put("/a/x", here(8), "2"), "conflict 1@1"),
        (put("/a/x", here(1), "2"), "committed 2"),
        (del("/a/x", here(1)), "conflict 2@2"),
        (del("/a/x", here(2)), "committed 3"),
        (del("/a/x", here(2)), "conflict -"),
        (put("/a/x", here(3), "3"), "conflict -"),
        (put("/a/x", Expect::Absent, "3"), "committed 4"),
    ];
    for (txn, expected) in cases {
        let outcome = store.commit(txn.clone()).await.expect("works");
        assert_eq!(show(&outcome, base), expected, "{txn:?}");
    }
    assert_eq!(store.barrier().await.expect("open").get(), base.get() + 4);
    let found = store.get(&key("/a/x")).await.expect("open").expect("there");
    assert_eq!((found.revision.get() - base.get(), &found.value[..]), (4, &b"3"[..]));
    assert_eq!(store.get(&key("/b")).await.expect("open"), None);
}

async fn ranges(store: &Etcd) {
    let base = store.barrier().await.expect("open");
    for name in ["/r/1", "/r/2", "/r/3", "/rb", "/s/1"] {
        committed(store, put(name, Expect::Absent, "x")).await;
    }
    let here = |n: u64| Revision::from_log(base.get() + n);
    committed(store, put("/r/1", at(here(1)), "y")).await;
    committed(store, del("/r/2", at(here(2)))).await;
    let next = Range { start_after: Some(key("/r/1")), ..range("/r/", 1, Some(here(3))) };
    let cases = [
        (range("/r/", 10, None), "7 /r/1=y@6 /r/3=x@3 false"),
        (range("/r/", 1, None), "7 /r/1=y@6 true"),
        (range("/r/", 10, Some(here(3))), "3 /r/1=x@1 /r/2=x@2 /r/3=x@3 false"),
        (range("/r/", 10, Some(here(0))), "0  false"),
        (next, "3 /r/2=x@2 true"),
        (range("/t/", 1, None), "7  false"),
    ];
    for (range, expected) in cases {
        assert_eq!(list(store, range.clone(), base).await.expect("works"), expected, "{range:?}");
    }
    let keys = store.keys(range("/r/", 10, Some(here(3)))).await.expect("works");
    let shown: Vec<_> = keys
        .items
        .iter()
        .map(|(key, found)| format!("{key}@{}={}", found.revision.get() - base.get(), found.value.len()))
        .collect();
    assert_eq!(shown, ["/r/1@1=0", "/r/2@2=0", "/r/3@3=0"], "without values");
    let asked = || store.counters().requests.load(Ordering::Relaxed);
    let after = Range { start_after: Some(key("/r/1")), ..range("/r/", 1, Some(here(3))) };
    let counts = [
        (range("/r/", 1, None), 2),
        (range("/r/", 1, Some(here(3))), 3),
        (after, 2),
        (range("/t/", 1, None), 0),
        (range("/", 1, Some(here(5))), 6),
    ];
    for (range, expected) in counts {
        let before = asked();
        assert_eq!(store.count(range.clone()).await.expect("works"), expected, "{range:?}");
        assert!(asked() <= before + 3, "one request, beside the upkeep's");
    }
    let future = store.count(range("/r/", 1, Some(here(8)))).await;
    assert!(matches!(future, Err(ReadError::Future { .. })), "{future:?}");
    let future = list(store, range("/r/", 1, Some(here(8))), base).await.expect_err("not yet");
    assert!(matches!(future, ReadError::Future { asked, current } if (asked, current) == (here(8), here(7))));
}

async fn feeds(store: &Etcd) {
    let base = store.barrier().await.expect("open");
    let here = |n: u64| Revision::from_log(base.get() + n);
    committed(store, put("/f/1", Expect::Absent, "x")).await;
    committed(store, put("/g/1", Expect::Absent, "x")).await;
    committed(store, del("/f/1", at(here(1)))).await;
    let mut from_start = store.feed("/f/", base).await.expect("kept");
    let mut from_one = store.feed("/f/", here(1)).await.expect("kept");
    let mut future = store.feed("/f/", here(4)).await.expect("will come");
    committed(store, put("/f/2", Expect::Absent, "y")).await;
    committed(store, put("/g/2", Expect::Absent, "y")).await;
    assert_eq!(told(&mut from_start, base, here(5)).await, "/f/1=x@1 /f/1=-@3 /f/2=y@4");
    assert_eq!(told(&mut from_one, base, here(5)).await, "/f/1=-@3 /f/2=y@4");
    committed(store, put("/f/3", Expect::Absent, "z")).await;
    for feed in [&mut from_start, &mut future] {
        assert_eq!(told(feed, base, here(6)).await, "/f/3=z@6");
    }
}

/// A feed reaches what is current although nothing below its prefix is written.
async fn barriers(store: &Arc<Etcd>) {
    let base = store.barrier().await.expect("open");
    let mut feed = store.feed("/quiet/", base).await.expect("kept");
    for n in 0..20 {
        let written = committed(store, put(&format!("/busy/{n}"), Expect::Absent, "x")).await;
        let barrier = store.barrier().await.expect("open");
        assert!(barrier >= written);
        assert_eq!(told(&mut feed, base, barrier).await, "");
    }
    let sent = || store.sent().expect("it is elsewhere").barriers;
    let before = sent();
    let begun = Clock::system().now();
    let ask = |store: Arc<Etcd>| tokio::spawn(async move { store.barrier().await });
    let all: Vec<_> = (0..1_000).map(|_| ask(store.clone())).collect();
    for barrier in all {
        barrier.await.expect("no panic").expect("open");
    }
    let sent = sent() - before;
    let periods = (Clock::system().now() - begun).as_millis() as u64 / 10;
    assert!(sent <= periods + 3, "{sent} quorum reads in {periods} periods");
}

/// Keys that share a lease go together, at one revision that a feed does not split.
async fn expiry(store: &Etcd, cluster: &Cluster) {
    let base = store.barrier().await.expect("open");
    let mut feed = store.feed("/ttl/", base).await.expect("kept");
    for (name, seconds) in [("/ttl/a", 3600), ("/ttl/b", 3600), ("/ttl/c", 1)] {
        let op = Op::Put { value: Bytes::from_static(b"x"), ttl: Some(Duration::from_secs(seconds)) };
        committed(store, Txn { key: key(name), expect: Expect::Absent, op }).await;
    }
    let leases = cluster.gateway("lease/leases", "{}").expect("listed");
    let ids =
        leases["leases"].as_array().expect("some").iter().map(|lease| lease["ID"].as_str().expect("an id"));
    let lives = |id: &&str| {
        let asked = format!(r#"{{"ID":"{id}","keys":true}}"#);
        let lease = cluster.gateway("lease/timetolive", &asked).expect("told");
        lease["grantedTTL"] == "3660"
    };
    let shared: Vec<_> = ids.filter(lives).collect();
    assert_eq!(shared.len(), 1, "{leases}");
    cluster.gateway("lease/revoke", &format!(r#"{{"ID":"{}"}}"#, shared[0])).expect("revoked");
    let seen = told(&mut feed, base, Revision::from_log(base.get() + 5)).await;
    assert_eq!(seen, "/ttl/a=x@1 /ttl/b=x@2 /ttl/c=x@3 /ttl/a=-@4 /ttl/b=-@4 /ttl/c=-@5");
    // The lease is gone, which is found out and made good.
    let op = Op::Put { value: Bytes::from_static(b"x"), ttl: Some(Duration::from_secs(3600)) };
    committed(store, Txn { key: key("/ttl/d"), expect: Expect::Absent, op }).await;
}

async fn sizes(store: &Etcd) {
    let large = "x".repeat(2 << 20);
    let refused = store.commit(put("/large", Expect::Absent, &large)).await;
    assert!(matches!(refused, Err(TxnError::TooLarge { .. })), "{refused:?}");
    // Pages stay small however large the values are.
    let value = "y".repeat(1 << 20);
    for n in 0..12 {
        committed(store, put(&format!("/big/{n:02}"), Expect::Absent, &value)).await;
    }
    let (mut pages, mut keys, mut after) = (0, 0, None);
    loop {
        let page =
            store.range(Range { start_after: after, ..range("/big/", 500, None) }).await.expect("works");
        (pages, keys) = (pages + 1, keys + page.items.len());
        after = page.items.last().map(|(key, _)| key.clone());
        if !page.more {
            break;
        }
    }
    assert_eq!(keys, 12);
    let again = store.range(range("/big/", 500, None)).await.expect("works");
    assert!(again.items.len() <= 4, "{} values of 1 MiB in a page", again.items.len());
    // A feed of much more than is held at a time loses nothing of it.
    let mut feed = store.feed("/big/", Revision::FIRST).await.expect("kept");
    let upto = store.barrier().await.expect("open");
    assert_eq!(told(&mut feed, Revision::FIRST, upto).await.matches("/big/").count(), 12);
    assert!(pages >= 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn history_that_is_gone_is_told_by_type_and_found_where_it_begins() {
    on_every_etcd(tells_gone_history).await;
}

async fn tells_gone_history(series: Series) {
    let cluster = Cluster::start_of(series, 1, Security::Plain).expect("starts");
    let store = open(&cluster);
    store.reach(WAIT).await.expect("answers");
    assert_eq!(store.oldest().await.expect("open"), Revision::FIRST);
    expiry(&store, &cluster).await;
    let mut last = committed(&store, put("/a", Expect::Absent, "0")).await;
    for n in 1..40 {
        last = committed(&store, put("/a", at(last), &n.to_string())).await;
    }
    for gone in [20, 43, last.get()] {
        // By others: nobody notes it in the key that is there for it.
        cluster.compact(gone).expect("compacts");
        let kept = Revision::from_log(gone);
        assert_eq!(store.oldest().await.expect("open"), kept);
        assert_eq!(open(&cluster).oldest().await.expect("open"), kept, "another that has seen nothing");
        let before = Revision::from_log(gone - 1);
        let read = store.range(range("/", 9, Some(before))).await.expect_err("gone");
        assert!(
            matches!(read, ReadError::Compacted { asked, oldest } if (asked, oldest) == (before, kept)),
            "{read}"
        );
        store.range(range("/", 9, Some(kept))).await.expect("kept");
        let mut feed = store.feed("/", Revision::from_log(gone - 2)).await.expect("opens");
        let end = ended(&mut feed).await;
        assert!(matches!(end, FeedError::Compacted { oldest } if oldest == kept), "{end}");
        let mut feed = store.feed("/", kept).await.expect("opens");
        assert!(told(&mut feed, kept, last).await.matches("/a=").count() as u64 == last.get() - gone);
        last = committed(&store, put("/a", at(last), "more")).await;
    }
}

/// Writes `/k/<n>` until it is there, and says at which revision it is.
async fn insist(store: &Etcd, n: u64) {
    let value = n.to_string();
    let until = Clock::system().now() + 2 * WAIT;
    loop {
        match store.commit(put(&format!("/k/{n:03}"), Expect::Absent, &value)).await {
            Ok(TxnResponse::Committed(_)) => return,
            // The one that was not answered was carried out.
            Ok(TxnResponse::Conflict(Some(there))) => return assert_eq!(there.value, value.as_bytes()),
            Err(TxnError::Unanswered { .. } | TxnError::Busy) if Clock::system().now() < until => {}
            other => panic!("/k/{n}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_that_die_or_stand_still_cost_no_event_and_no_write() {
    on_every_etcd(outlives_members).await;
}

async fn outlives_members(series: Series) {
    let mut cluster = Cluster::start_of(series, 3, Security::Plain).expect("starts");
    let store = open(&cluster);
    store.reach(WAIT).await.expect("answers");
    let base = store.barrier().await.expect("open");
    let mut feeds = Vec::new();
    for _ in 0..6 {
        feeds.push(store.feed("/k/", base).await.expect("kept"));
    }
    const WRITES: u64 = 120;
    for n in 0..WRITES {
        match n {
            20 => cluster.kill(0).expect("killed"),
            45 => cluster.restart(0).expect("back"),
            60 => cluster.pause(1).expect("stands still"),
            80 => cluster.resume(1).expect("goes on"),
            90 => cluster.kill(2).expect("killed"),
            _ => {}
        }
        // Whoever reads at quorum finds out before a write's own deadline that nobody answers.
        let _ = tokio::join!(insist(&store, n), store.barrier());
    }
    let upto = store.barrier().await.expect("open");
    let all: Vec<String> = (0..WRITES).map(|n| format!("/k/{n:03}={n}")).collect();
    for mut feed in feeds {
        let told = told(&mut feed, base, upto).await;
        let told: Vec<_> =
            told.split(' ').map(|change| change.split('@').next().expect("a change")).collect();
        assert_eq!(told, all, "each once, in order");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_that_is_gone_is_waited_for_and_one_that_was_put_back_is_noticed() {
    on_every_etcd(is_waited_for).await;
}

async fn is_waited_for(series: Series) {
    let mut cluster = Cluster::start_of(series, 1, Security::Plain).expect("starts");
    let store = open(&cluster);
    store.reach(WAIT).await.expect("answers");
    let base = store.barrier().await.expect("open");
    let mut feed = store.feed("/a/", base).await.expect("kept");
    committed(&store, put("/a/1", Expect::Absent, "x")).await;

    cluster.kill(0).expect("killed");
    let ask = |store: Arc<Etcd>| tokio::spawn(async move { store.barrier().await });
    for barrier in (0..1_000).map(|_| ask(store.clone())).collect::<Vec<_>>() {
        let answer = barrier.await.expect("no panic");
        assert!(matches!(answer, Err(ReadError::Unanswered { .. })), "{answer:?}");
    }
    assert!(store.failure().is_some());
    let write = store.commit(put("/a/2", Expect::Absent, "x")).await;
    assert!(matches!(write, Err(TxnError::Unanswered { .. })), "{write:?}");
    assert!(matches!(store.get(&key("/a/1")).await, Err(ReadError::Unanswered { .. })));
    let saved = cluster.dir().join("saved");
    copy(&cluster.dir().join("etcd-0"), &saved);

    cluster.restart(0).expect("back");
    store.reach(WAIT).await.expect("answers again");
    assert_eq!(store.failure(), None);
    let last = committed(&store, put("/a/2", Expect::Absent, "y")).await;
    assert_eq!(told(&mut feed, base, last).await, "/a/1=x@1 /a/2=y@2", "the same feed goes on");

    cluster.kill(0).expect("killed");
    std::fs::remove_dir_all(cluster.dir().join("etcd-0")).expect("gone");
    std::fs::rename(&saved, cluster.dir().join("etcd-0")).expect("put back");
    cluster.restart(0).expect("back");
    let end = ended(&mut feed).await;
    assert!(
        matches!(end, FeedError::WentBack { reached, current } if reached == last && current < last),
        "{end}"
    );
}

/// Bytes of the large resource in the test, in MiB; `FOREBAY_TEST_LARGE_MB=400` gives the figures.
const LARGE_MB: usize = 48;

/// Events that are told while all of it is read, at least: there would be one, if they waited for its end.
const MEANWHILE_MIN: usize = 10;

/// How late one may be, unless reading all takes more than twice as long.
const LATE_MAX: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_watch_is_told_in_time_while_a_large_resource_is_read() {
    on_every_etcd(tells_in_time).await;
}

async fn tells_in_time(series: Series) {
    let mb = std::env::var("FOREBAY_TEST_LARGE_MB").ok().and_then(|mb| mb.parse().ok()).unwrap_or(LARGE_MB);
    // With TLS, over which etcd serves streams of one connection in turn (etcd-io/etcd#15402).
    let cluster = Cluster::start_of(series, 1, Security::Mutual).expect("starts");
    let store = open(&cluster);
    store.reach(WAIT).await.expect("answers");
    let value = "y".repeat(1 << 20);
    for number in 0..mb {
        committed(&store, put(&format!("/large/{number:04}"), Expect::Absent, &value)).await;
    }
    let at = store.barrier().await.expect("open");
    // Caches of several servers that are filled at the same time, begun before the watch.
    let fill = |store: Arc<Etcd>| async move {
        let clock = Clock::system();
        let (begun, mut keys) = (clock.now(), 0);
        let mut pages = store.pages(range("/large/", 16, Some(at)));
        loop {
            let page = pages.next(16).await.expect("kept");
            keys += page.items.len();
            if !page.more {
                return (keys, clock.now() - begun);
            }
        }
    };
    let fills: Vec<_> = (0..3).map(|_| tokio::spawn(fill(store.clone()))).collect();
    let mut feed = store.feed("/k/", at).await.expect("kept");
    let (clock, mut latest, mut rounds) = (Clock::system(), Duration::ZERO, 0);
    while fills.iter().any(|fill| !fill.is_finished()) {
        let written = committed(&store, put(&format!("/k/{rounds}"), Expect::Absent, "x")).await;
        let begun = clock.now();
        let before = Revision::from_log(written.get() - 1);
        let told = told(&mut feed, before, written).await;
        assert_eq!(told, format!("/k/{rounds}=x@1"), "each once, none else");
        latest = latest.max(clock.now() - begun);
        rounds += 1;
    }
    let mut slowest = Duration::ZERO;
    for fill in fills {
        let (keys, took) = fill.await.expect("no panic");
        assert_eq!(keys, mb);
        slowest = slowest.max(took);
    }
    println!(
        "figure: etcd {series:?}: {mb} MiB read three times in {:.2} s; {rounds} events meanwhile, at most {:.0} ms after the write",
        slowest.as_secs_f64(),
        latest.as_secs_f64() * 1e3
    );
    assert!(rounds >= MEANWHILE_MIN, "only {rounds} events came while it was read");
    assert!(
        latest <= LATE_MAX.max(slowest / 2),
        "one came {latest:?} after its write, all was read in {slowest:?}"
    );
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).expect("made");
    for entry in std::fs::read_dir(from).expect("listed") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("known").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("copied")),
        }
    }
}
