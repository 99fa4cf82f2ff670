//! Views on a store in memory, with somebody who converts by a rule and counts.

use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_apimachinery::Reason;
use forebay_backend::{Backend as _, Expect, Op, Txn, TxnResponse};
use forebay_embedded::{Engine, Options};
use forebay_rt::{Clock, Duration, Tasks};
use forebay_watchcache::limits::{FRESH_WAIT, LOOSE_BYTES_MAX, PACE};
use forebay_watchcache::{EarlyReaders, History, Interest, Room, WatchStep};
use serde_json::json;

use super::*;
use crate::crd::LayoutKey;
use crate::custom;
use crate::limits::{CONVERTED_AT_ONCE_MAX, VIEW_RETRY_SECONDS};
use crate::served::Served;

/// Moves `spec.old` to `spec.new`, but for what is `bad`.
#[derive(Default)]
struct Rule {
    calls: AtomicUsize,
    objects: AtomicUsize,
}

impl Converts for Rule {
    fn convert<'a>(&'a self, objects: Vec<Value>, to: &'a str, _lease: &'a Lease) -> Converting<'a> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::Relaxed);
            self.objects.fetch_add(objects.len(), Ordering::Relaxed);
            let converted = objects.into_iter().map(|mut object| {
                if object["spec"]["old"] == "bad" {
                    return Err(Status::new(Reason::Unknown, "it is bad"));
                }
                object["apiVersion"] = to.into();
                let value = object["spec"]["old"].take();
                object["spec"] = json!({ "new": value });
                Ok(object)
            });
            converted.collect()
        })
    }
}

struct World {
    store: Arc<Store>,
    rule: Arc<Rule>,
    clock: Clock,
    shown: Arc<Converted>,
    _served: Vec<Arc<Served>>,
}

fn crd() -> Value {
    let version = |name: &str, field: &str| {
        let spec = json!({ "type": "object", "properties": { field: { "type": "string" } } });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        json!({ "name": name, "served": true, "storage": name == "v1", "schema": { "openAPIV3Schema": schema } })
    };
    json!({
        "metadata": { "name": "tabs.g.io", "uid": "u" },
        "spec": {
            "group": "g.io", "scope": "Cluster", "names": { "plural": "tabs", "kind": "Tab" },
            "versions": [version("v1", "old"), version("v2", "new")], "conversion": { "strategy": "Webhook" },
        },
    })
}

async fn world() -> World {
    let clock = Clock::system();
    let backend =
        Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
    let opener = Opener {
        storage_prefix: "/registry".into(),
        pace: PACE,
        history: History::Own,
        room: Arc::new(Room::new(LOOSE_BYTES_MAX)),
        early: Arc::new(EarlyReaders::held_back()),
        backend,
        clock: clock.clone(),
        tasks: Tasks::new(),
    };
    let store = Arc::new(LayoutKey::of(&crd()).open(&crd(), &opener));
    store.cacher.wait_ready().await;
    let rule = Arc::<Rule>::default();
    let conversion = WebhookConversion { converts: rule.clone(), opener, is_mixed: false };
    let served = custom::served(&crd(), (&store, &[]), Revision::FIRST, Some(&conversion));
    let shown = served[1].converted.clone().expect("a webhook converts it");
    World { store, rule, clock, shown, _served: served }
}

impl World {
    fn calls(&self) -> (usize, usize) {
        (self.rule.calls.swap(0, Ordering::Relaxed), self.rule.objects.swap(0, Ordering::Relaxed))
    }

    async fn put(&self, name: &str, old: &str) -> Revision {
        let key = self.store.key("", name);
        let there = self.store.backend.get(&key).await.expect("read");
        let expect = there.map_or(Expect::Absent, |there| Expect::At(there.revision));
        let object = json!({
            "apiVersion": "g.io/v1", "kind": "Tab", "metadata": { "name": name, "uid": name },
            "spec": { "old": old },
        });
        self.commit(Txn { key, expect, op: Op::Put { value: object.to_string().into(), ttl: None } }).await
    }

    async fn delete(&self, name: &str) -> Revision {
        let key = self.store.key("", name);
        let there = self.store.backend.get(&key).await.expect("read").expect("is there");
        self.commit(Txn { key, expect: Expect::At(there.revision), op: Op::Delete }).await
    }

    async fn commit(&self, txn: Txn) -> Revision {
        let done = self.store.backend.commit(txn).await.expect("commits");
        let TxnResponse::Committed(revision) = done else { panic!("somebody else wrote it") };
        revision
    }

    /// The view, begun if it is not there.
    fn begun(&self) -> Arc<View> {
        self.shown.view(None).expect("there is memory")
    }

    /// What the view shows of everything that is stored now: names with what they have in the other version.
    async fn shown(&self, view: &View) -> Result<Vec<String>, Status> {
        view.ready().await?;
        let deadline = self.clock.now() + FRESH_WAIT;
        let snapshot = view.guard(view.store().cacher.fresh(deadline)).await?.expect("it is current");
        let all = snapshot.range(&view.store().reach(None, None), None);
        let text = |object: &Arc<Object>| {
            let value: Value = serde_json::from_slice(&object.body()).expect("JSON");
            assert_eq!(value["apiVersion"], "g.io/v2");
            format!("{} {}", object.name(), value["spec"]["new"].as_str().unwrap_or_default())
        };
        Ok(all.map(text).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_has_each_object_once_and_each_change_once() {
    let world = world().await;
    for number in 0..CONVERTED_AT_ONCE_MAX + 10 {
        world.put(&format!("t-{number:04}"), "x").await;
    }
    let view = world.begun();
    assert_eq!(world.shown(&view).await.expect("converts").len(), CONVERTED_AT_ONCE_MAX + 10);
    let (calls, objects) = world.calls();
    assert!(calls <= 3 && objects == CONVERTED_AT_ONCE_MAX + 10, "{calls} for {objects}");
    world.put("t-0000", "y").await;
    world.delete("t-0001").await;
    let shown = world.shown(&view).await.expect("converts");
    assert_eq!((&*shown[0], &*shown[1]), ("t-0000 y", "t-0002 x"));
    assert_eq!(world.calls(), (1, 1));
    // Nothing of this resource happens, and yet it is known that nothing did.
    assert_eq!(world.shown(&world.begun()).await.expect("converts").len(), shown.len());
    let stored = world.store.cached(&world.store.key("", "t-0000")).expect("is there").object;
    let one = world
        .shown
        .shown(&stored, (&Lease::of_server(), &RequestContext::default()))
        .await
        .expect("converts");
    assert!(one.stored_version() == "v2" && one.revision() == stored.revision());
    assert_eq!(world.calls(), (0, 0), "the view has it");
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_said_until_it_is_gone_or_another() {
    let world = world().await;
    world.put("a", "x").await;
    let view = world.begun();
    assert_eq!(world.shown(&view).await.expect("converts"), ["a x"]);
    let failed = tokio::spawn(view.clone().failed());
    world.put("b", "bad").await;
    world.put("c", "bad").await;
    assert_eq!(failed.await.expect("it is told").message, "it is bad");
    assert_eq!(world.shown(&view).await.expect_err("b and c are bad").message, "it is bad");
    world.put("b", "y").await;
    assert_eq!(world.shown(&view).await.expect_err("c is bad").message, "it is bad");
    world.delete("c").await;
    assert_eq!(world.shown(&view).await.expect("converts"), ["a x", "b y"]);
    // Who reads nothing need not ask: it is tried again in time.
    let failed = tokio::spawn(view.clone().failed());
    world.put("a", "bad").await;
    failed.await.expect("it is told");
    world.put("a", "z").await;
    world.clock.sleep(Duration::from_secs(60)).await;
    assert_eq!(view.store().cached(&world.store.key("", "a")).expect("is there").object.body_len(), {
        let stored = world.store.cached(&world.store.key("", "a")).expect("is there").object;
        world
            .shown
            .shown(&stored, (&Lease::of_server(), &RequestContext::default()))
            .await
            .expect("converts")
            .body_len()
    });
}

#[tokio::test(start_paused = true)]
async fn a_view_goes_when_nobody_has_read_it_for_long() {
    let world = world().await;
    let view = world.begun();
    let weak = Arc::downgrade(&view);
    world.clock.sleep(VIEW_IDLE * 3).await;
    assert!(weak.upgrade().is_some(), "somebody has it");
    drop(view);
    world.clock.sleep(VIEW_IDLE * 2).await;
    assert!(weak.upgrade().is_none());
    world.put("a", "x").await;
    assert_eq!(world.calls(), (0, 0));
    assert_eq!(world.shown(&world.begun()).await.expect("converts"), ["a x"]);
}

#[tokio::test(start_paused = true)]
async fn a_view_begins_as_far_back_as_somebody_asks() {
    let world = world().await;
    let before = world.put("a", "x").await;
    world.put("a", "y").await;
    world.delete("a").await;
    world.store.cacher.fresh(world.clock.now() + FRESH_WAIT).await.expect("it is current");
    let view = world.shown.view(Some(before)).expect("there is memory");
    assert!(world.shown(&view).await.expect("converts").is_empty());
    let everything = Interest::all(view.store().reach(None, None));
    let mut watcher = view.store().cacher.watch(everything, before).expect("it reaches back");
    let mut kinds = Vec::new();
    while let Some(WatchStep::Event { kind, .. }) = watcher.try_next() {
        kinds.push(format!("{kind:?}"));
    }
    assert_eq!(kinds, ["Modified", "Deleted"]);
}

#[tokio::test(start_paused = true)]
async fn a_view_is_the_first_to_go_where_memory_is_short() {
    let relief =
        |made, snapshots, windows| Relief { made, snapshots, windows_bytes_max: usize::MAX, windows };
    let (none, caches) = (relief(false, false, false), relief(true, false, false));
    let (readers, windows) = (relief(true, true, false), relief(true, true, true));
    let world = world().await;
    world.put("a", "x").await;
    let read = async |view: Arc<View>| world.shown(&view).await.expect("converts");
    let view = world.begun();
    let weak = Arc::downgrade(&view);
    assert_eq!(read(view.clone()).await, ["a x"]);
    world.clock.sleep(VIEW_IDLE_WHEN_SHORT).await;
    assert!(!world.shown.relieve(readers), "somebody has it");
    drop(view);
    assert!(!world.shown.relieve(none), "nothing is short");
    drop(world.begun());
    assert!(!world.shown.relieve(caches), "it was read a moment ago");
    world.clock.sleep(VIEW_IDLE_WHEN_SHORT).await;
    assert!(world.shown.relieve(caches));
    assert!(weak.upgrade().is_none() && world.shown.viewed().is_none());
    // It is made again, and goes sooner where that did not help.
    world.calls();
    assert_eq!(read(world.begun()).await, ["a x"]);
    assert_eq!(world.calls(), (1, 1));
    assert!(world.shown.relieve(readers));
    // What is read goes when nothing else helps: whoever reads is told, and nobody begins anew.
    let view = world.begun();
    assert_eq!(read(view.clone()).await, ["a x"]);
    let told = tokio::spawn(view.clone().failed());
    assert!(world.shown.relieve(windows));
    let told = told.await.expect("it is told");
    assert_eq!((told.reason, told.retry_after_seconds), (Reason::TooManyRequests, VIEW_RETRY_SECONDS));
    assert_eq!(view.guard(std::future::ready(())).await.expect_err("it is over").reason, told.reason);
    let refused = world.shown.view(None).err().expect("there is no memory");
    assert_eq!(refused.reason, Reason::TooManyRequests);
    assert!(!world.shown.relieve(none));
    assert_eq!(read(world.begun()).await, ["a x"]);
}
