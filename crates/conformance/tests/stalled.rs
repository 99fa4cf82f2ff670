//! A cache that cannot be proved to be current, which no request can bring about on a real server: consistent
//! reads are shed, and nothing is ever listed from the store (kubernetes#138494).
//!
//! In: a backend that says a newer revision is current than the cache will see. Out: what clients are told
//! meanwhile, and which reads the store got.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, BoxFuture, Layer, Range, RangePage, ReadError, Versioned};
use forebay_catalog::Target;
use forebay_conformance::contract::history::{ApiResource, NAMESPACE_PREFIX, NAMESPACES};
use forebay_conformance::contract::local::{Local, Storage};
use forebay_conformance::contract::shape::Observation;
use forebay_conformance::contract::table::{RequestPath, Verb};
use forebay_rt::{Clock, Duration};
use serde_json::json;

/// How long a consistent read waits for the cache.
const FRESH_WAIT: Duration = Duration::from_secs(3);

/// What is said to be current while it stalls: more than anybody writes.
const FAR: u64 = 1 << 40;

const CONFIG_MAPS: ApiResource = ApiResource {
    group: "",
    version: "v1",
    plural: "configmaps",
    kind: "ConfigMap",
    namespaced: true,
    field: "",
};

/// A backend whose feeds never reach what its barrier says, and the reads that it gets.
struct Stalling {
    behind: Arc<dyn Backend>,
    stalls: AtomicBool,
    gets: AtomicUsize,
    ranges: AtomicUsize,
}

impl Layer for Stalling {
    fn below(&self) -> Arc<dyn Backend> {
        self.behind.clone()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.behind.get(key)
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        self.ranges.fetch_add(1, Ordering::Relaxed);
        self.behind.range(range)
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        match self.stalls.load(Ordering::Relaxed) {
            true => Box::pin(std::future::ready(Ok(Revision::from_log(FAR)))),
            false => self.behind.barrier(),
        }
    }
}

/// ConfigMaps of namespace `a`, of which there is one.
struct World {
    local: Local,
    backend: Arc<Stalling>,
    collection: Target,
    one: Target,
}

impl World {
    async fn new() -> World {
        let mut between = None;
        let local = Local::start_behind(&Storage::EmbeddedInMemory, |behind| {
            let backend = Stalling {
                behind,
                stalls: AtomicBool::new(false),
                gets: AtomicUsize::new(0),
                ranges: AtomicUsize::new(0),
            };
            let backend = Arc::new(backend);
            between = Some(backend.clone());
            backend
        });
        let local = local.await.expect("it starts");
        let namespace = format!("{NAMESPACE_PREFIX}a");
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        local.create(&local.target(&NAMESPACES, None, None).expect("served"), &object).await.expect("made");
        let target = |name| local.target(&CONFIG_MAPS, Some(&namespace), name).expect("served");
        let (collection, one) = (target(None), target(Some("one")));
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one" } });
        let made = local.create(&collection, &object).await.expect("made");
        assert_eq!(made.body["metadata"]["name"], "one", "{}", made.body);
        // What was written is in the cache.
        let world = World { backend: between.expect("it was put between"), collection, one, local };
        assert_eq!(names(&world.list("").await), ["one"]);
        world
    }

    fn stall(&self, stalls: bool) {
        self.backend.stalls.store(stalls, Ordering::Relaxed);
    }

    async fn list(&self, query: &str) -> Observation {
        self.local.read(&self.collection, Verb::List, query).await.expect("an answer")
    }

    async fn get(&self, query: &str) -> Observation {
        self.local.read(&self.one, Verb::Get, query).await.expect("an answer")
    }

    /// Reads that the store got: of one key, of many.
    fn reads(&self) -> (usize, usize) {
        (self.backend.gets.load(Ordering::Relaxed), self.backend.ranges.load(Ordering::Relaxed))
    }
}

fn names(list: &Observation) -> Vec<&str> {
    let items = list.body["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

/// The Retry-After of a 429.
fn shed(answer: &Observation) -> u64 {
    assert_eq!(answer.body["reason"], "TooManyRequests", "{}", answer.body);
    answer.body["details"]["retryAfterSeconds"].as_u64().expect("when to come again")
}

#[tokio::test]
async fn consistent_lists_are_shed_while_the_cache_is_behind_and_never_read_from_the_store() {
    let (world, clock) = (World::new().await, Clock::system());
    let before = world.reads();
    world.stall(true);
    let start = clock.now();
    // As many as come while the first of them waits, and more at once after it.
    let first = futures_util::future::join_all((0..50).map(|_| world.list(""))).await;
    let waited = clock.now().duration_since(start);
    assert!(waited >= FRESH_WAIT && waited < FRESH_WAIT * 10, "50 of them one after the other: {waited:?}");
    let start = clock.now();
    let later = futures_util::future::join_all((0..50).map(|_| world.list("?limit=1"))).await;
    assert!(clock.now().duration_since(start) < FRESH_WAIT, "they waited again");
    let seconds: Vec<u64> = first.iter().chain(&later).map(shed).collect();
    assert!(seconds.iter().all(|seconds| (1..=8).contains(seconds)), "{seconds:?}");
    let spread: BTreeSet<u64> = seconds.into_iter().collect();
    assert!(spread.len() >= 4, "all of them come back together: {spread:?}");
    assert_eq!(world.reads(), before, "the store was read");
    // What need not be current is answered all the same.
    assert_eq!(names(&world.list("resourceVersion=0").await), ["one"]);
    assert_eq!(world.reads(), before);
    world.local.stop().await;
}

#[tokio::test]
async fn a_get_reads_its_one_key_from_the_store_while_the_cache_is_behind() {
    let world = World::new().await;
    let (gets, ranges) = world.reads();
    world.stall(true);
    let answer = world.get("").await;
    assert_eq!(answer.body["metadata"]["name"], "one", "{}", answer.body);
    assert_eq!(world.reads(), (gets + 1, ranges));
    let absent = world.local.target(&CONFIG_MAPS, Some("contract-a"), Some("absent")).expect("served");
    let answer = world.local.read(&absent, Verb::Get, "").await.expect("an answer");
    assert_eq!(answer.body["reason"], "NotFound", "{}", answer.body);
    assert_eq!(world.reads(), (gets + 2, ranges));
    // One that may be old is not read from the store.
    let answer = world.get("resourceVersion=0").await;
    assert_eq!(answer.body["metadata"]["name"], "one", "{}", answer.body);
    assert_eq!(world.reads(), (gets + 2, ranges));
    world.local.stop().await;
}

#[tokio::test]
async fn a_lease_is_renewed_while_the_cache_is_behind() {
    let world = World::new().await;
    world.stall(true);
    let patch = json!({ "data": { "renewed": "yes" } });
    let answer = world.local.patch(&world.one, &patch).await.expect("an answer");
    assert_eq!(answer.body["data"]["renewed"], "yes", "{}", answer.body);
    let answer = world.get("").await;
    assert_eq!(answer.body["data"]["renewed"], "yes", "{}", answer.body);
    world.local.stop().await;
}

#[tokio::test]
async fn a_watch_that_cannot_start_is_refused_before_its_stream_and_the_next_one_starts_when_the_stall_is_over()
 {
    let world = World::new().await;
    world.stall(true);
    let path = RequestPath { watch_path: false, in_namespace: true, name: None };
    for query in ["watch=1", "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"] {
        let begun = world.local.watch(&world.collection, &path, query).await.expect("an answer");
        let Err(refused) = begun else { panic!("{query}: it began") };
        assert!((1..=8).contains(&shed(&refused)), "{}", refused.body);
    }
    world.stall(false);
    let (clock, query) = (Clock::system(), "watch=1&allowWatchBookmarks=true&timeoutSeconds=2");
    let deadline = clock.now() + Duration::from_secs(60);
    let events = loop {
        match world.local.watch(&world.collection, &path, query).await.expect("an answer") {
            Ok(stream) => break stream.events().await.expect("events").events.expect("a stream"),
            // For a second after the last that failed, others fail at once.
            Err(refused) => assert!(clock.now() < deadline, "still refused: {}", refused.body),
        }
        tokio::task::yield_now().await;
    };
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds, ["ADDED", "BOOKMARK"], "{events:?}");
    assert_eq!(names(&world.list("").await), ["one"]);
    world.local.stop().await;
}
