//! Informers of a real server.
//!
//! In: a server for each test, over connections of ours. Out: what the informers show and tell, and what they
//! asked for. Never: a wait without a limit.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_clients::ControlPlane;
use forebay_informer::{Connected, Factory, Informer, Notice, Options, Revision, Subscription, Watched};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt};
use serde_json::json;

/// Longest wait for anything.
const WAIT_MAX: Duration = Duration::from_secs(30);

struct World {
    server: ControlPlane,
    connected: Connected,
    factory: Factory,
}

impl World {
    async fn new() -> World {
        let server = ControlPlane::start().unwrap_or_else(|why| panic!("{why}"));
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
        let connected = forebay_connector::connect(config, forebay_connector::PoolOptions::default());
        let connected = connected.expect("a configuration that can be used");
        let factory = Factory::new(connected.clone(), Options::default());
        World { server, connected, factory }
    }

    /// An informer that has what is labelled in the namespace `here`.
    async fn mirrored(&self) -> Informer<ConfigMap> {
        let watched = Watched::<ConfigMap>::all().namespace("here").labels("app");
        let informer = self.factory.informer(&watched).expect("no index");
        synced(&informer).await;
        informer
    }

    fn client(&self) -> Client {
        self.connected.client.clone()
    }

    async fn namespace(&self, name: &str) -> Api<ConfigMap> {
        let namespace: Namespace = made(json!({"metadata": {"name": name}}));
        Api::all(self.client()).create(&PostParams::default(), &namespace).await.expect("a namespace");
        Api::namespaced(self.client(), name)
    }
}

fn made<K: serde::de::DeserializeOwned>(object: serde_json::Value) -> K {
    serde_json::from_value(object).expect("the kind")
}

/// A ConfigMap, and the revision of its creation.
async fn create(maps: &Api<ConfigMap>, name: &str, app: &str) -> Revision {
    let map = made(json!({"metadata": {"name": name, "labels": {"app": app}}, "data": {"mode": "a"}}));
    revision(&maps.create(&PostParams::default(), &map).await.expect("it is created"))
}

async fn set_mode(maps: &Api<ConfigMap>, name: &str, mode: &str) -> Revision {
    let patch = Patch::Merge(json!({"data": {"mode": mode}}));
    revision(&maps.patch(name, &PatchParams::default(), &patch).await.expect("it is patched"))
}

fn revision(object: &impl ResourceExt) -> Revision {
    let revision = object.resource_version().and_then(|revision| revision.parse().ok());
    revision.and_then(Revision::new).expect("a resourceVersion")
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT_MAX, work)
        .await
        .unwrap_or_else(|_| panic!("{what} did not come in {WAIT_MAX:?}"))
}

/// The next `count` notices, in short.
async fn told(subscription: &mut Subscription<ConfigMap>, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    while lines.len() < count {
        lines.push(match in_time("a notice", subscription.next()).await {
            Notice::Added(map) => format!("+{}", map.name()),
            Notice::Updated { old, new } => format!("~{} {} to {}", new.name(), mode(&old), mode(&new)),
            Notice::Deleted(map) => format!("-{} {}", map.name(), mode(&map)),
            Notice::Synced => "synced".into(),
            Notice::LetGo { .. } => "let go".into(),
            Notice::Relisted { differences } => format!("relisted {differences}"),
            Notice::Resync(map) => format!("again {}", map.name()),
            Notice::Ended => "ended".into(),
        });
    }
    lines
}

fn mode(map: &forebay_informer::Handle<ConfigMap>) -> String {
    map.typed().expect("a ConfigMap").data.as_ref().map_or(String::new(), |data| data["mode"].clone())
}

async fn synced(informer: &Informer<ConfigMap>) {
    in_time("a state", informer.synced()).await.expect("it is not stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collection_is_mirrored_and_what_happens_to_it_is_told() {
    let world = World::new().await;
    let maps = world.namespace("here").await;
    for name in ["one", "two"] {
        create(&maps, name, "web").await;
    }
    let informer = world.mirrored().await;
    let mut subscription = informer.subscribe();
    assert_eq!(told(&mut subscription, 3).await, ["+one", "+two", "synced"]);
    let revision = set_mode(&maps, "one", "b").await;
    let view = informer.wait_for(revision).await.expect("it is seen");
    let one = view.get("here", "one").expect("it is there");
    assert_eq!((mode(&one).as_str(), one.revision()), ("b", revision));
    assert_eq!(one.metadata().expect("metadata").labels["app"], "web");
    create(&maps, "three", "db").await;
    maps.delete("two", &DeleteParams::default()).await.expect("it is deleted");
    assert_eq!(told(&mut subscription, 3).await, ["~one a to b", "+three", "-two a"]);
    assert_eq!(view.len(), 2, "a view stays as it was");
    assert_eq!(informer.view().expect("synced").len(), 2);
    let (_, stats) = &informer.stats()[0];
    assert_eq!((stats.pages_asked, stats.watch_lists_asked, stats.states["first"]), (0, 1, 1));
    assert!(informer.health().failing.is_none() && informer.age().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_costs_no_list_and_no_event() {
    let mut world = World::new().await;
    let maps = world.namespace("here").await;
    create(&maps, "one", "web").await;
    let informer = world.mirrored().await;
    let mut subscription = informer.subscribe();
    told(&mut subscription, 2).await;
    world.server.kill().expect("it is killed");
    world.server.start_again().expect("it comes back");
    let revision = set_mode(&maps, "one", "b").await;
    assert_eq!(told(&mut subscription, 1).await, ["~one a to b"]);
    assert!(informer.view().expect("held all the time").revision() >= Some(revision));
    let (_, stats) = &informer.stats()[0];
    assert_eq!((stats.pages_asked, stats.watch_lists_asked), (0, 1));
    assert!(stats.watches_asked > 0 && stats.states.len() == 1, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_found_by_label_by_field_and_by_function_in_several_namespaces() {
    let world = World::new().await;
    let (here, there, elsewhere) =
        (world.namespace("here").await, world.namespace("there").await, world.namespace("elsewhere").await);
    for (maps, name, app) in [(&here, "one", "web"), (&there, "two", "web"), (&there, "three", "db")] {
        create(maps, name, app).await;
    }
    create(&elsewhere, "four", "web").await;
    let watched = Watched::<ConfigMap>::all()
        .namespace("here")
        .namespace("there")
        .labels("app")
        .index("data.mode")
        .index("metadata.labels['app']");
    let informer = world.factory.informer(&watched).expect("indexes");
    synced(&informer).await;
    let by_mode = informer.index_by(|map: &forebay_informer::Handle<ConfigMap>| vec![mode(map)]);
    let revision = set_mode(&there, "two", "b").await;
    // The other namespace has had no event of its own, and may lag until its bookmark.
    let view = in_time("the write", async {
        loop {
            let view = informer.view().expect("synced");
            if view.get("there", "two").is_some_and(|two| two.revision() == revision) {
                break view;
            }
            tokio::task::yield_now().await;
        }
    });
    let view = view.await;
    let names = |found: Vec<forebay_informer::Handle<ConfigMap>>| -> Vec<String> {
        found.iter().map(|map| format!("{}/{}", map.namespace(), map.name())).collect()
    };
    assert_eq!(names(view.iter().collect()), ["here/one", "there/three", "there/two"]);
    assert_eq!(names(view.labelled("app=web").expect("a selector").collect()), ["here/one", "there/two"]);
    assert_eq!(names(view.labelled("app in (db),app").expect("a selector").collect()), ["there/three"]);
    assert_eq!(
        names(view.indexed("data.mode", "a").expect("an index").collect()),
        ["here/one", "there/three"]
    );
    assert_eq!(names(view.in_namespace("there").collect()), ["there/three", "there/two"]);
    assert_eq!(names(by_mode.get("b")), ["there/two"]);
    assert_eq!(names(by_mode.get("a")), ["here/one", "there/three"]);
    assert!(view.indexed("data.other", "a").is_err() && view.labelled("a=,").is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_are_shared_cast_and_end_with_the_last_who_holds_them() {
    let world = World::new().await;
    let maps = world.namespace("here").await;
    create(&maps, "one", "web").await;
    let all = Watched::<ConfigMap>::all().namespace("here").labels("app");
    let informer = world.factory.informer(&all).expect("no index");
    let resource = ApiResource::erase::<ConfigMap>(&());
    let same = Watched::<DynamicObject>::of(&resource).namespace("here").labels("app");
    let dynamic: Informer<DynamicObject> = world.factory.informer(&same).expect("no index");
    assert_eq!(world.factory.informers(), 1, "what is the same is asked for once");
    synced(&informer).await;
    let one = dynamic.view().expect("synced").get("here", "one").expect("there");
    assert_eq!(one.typed().expect("an object").data["data"]["mode"], "a");
    let metadata = informer.cast::<PartialObjectMeta<ConfigMap>>().view().expect("synced");
    let metadata = metadata.get("here", "one").expect("there");
    assert_eq!(metadata.typed().expect("metadata").metadata.name.as_deref(), Some("one"));
    let mut subscription = informer.subscribe();
    told(&mut subscription, 2).await;
    world.factory.stop(Duration::from_secs(5)).await;
    assert_eq!(told(&mut subscription, 1).await, ["ended"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_panics_or_never_returns_hurts_nobody_else() {
    let world = World::new().await;
    let maps = world.namespace("here").await;
    create(&maps, "one", "web").await;
    let informer = world.mirrored().await;
    let _stuck = informer.handle("stuck", |_| std::future::pending::<()>());
    let (seen, mut all) = tokio::sync::mpsc::channel(16);
    let panics = informer.handle("panics", move |notice| {
        let seen = seen.clone();
        async move {
            let Notice::Added(map) = notice else { return };
            seen.try_send(map.name().to_owned()).expect("the test listens");
            assert_ne!(map.name(), "one", "as it is to be");
        }
    });
    create(&maps, "two", "web").await;
    let mut names = Vec::new();
    for _ in 0..2 {
        names.push(in_time("a notice", all.recv()).await.expect("it goes on"));
    }
    assert_eq!(names, ["one", "two"]);
    assert_eq!(panics.stats().panics, 1);
    let metrics = world.factory.metrics();
    for line in [
        "informer_handler_panics_total{handler=\"panics\"} 1\n",
        "informer_handler_notices_total{handler=\"stuck\"} 1\n",
        "informer_states_total{collection=\"/api/v1/namespaces/here/configmaps\",reason=\"first\"} 1\n",
        "informer_objects{collection=\"/api/v1/namespaces/here/configmaps\"} 2\n",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_wrote_is_in_its_next_read() {
    let world = World::new().await;
    let maps = world.namespace("here").await;
    let informer = world.mirrored().await;
    let writes = informer.writes_of(maps.clone());
    for round in 0..20 {
        let name = format!("map-{round}");
        let map = made(json!({"metadata": {"name": name, "labels": {"app": "web"}}, "data": {"mode": "a"}}));
        writes.create(&PostParams::default(), &map).await.expect("it is created");
        let read = informer.read_object("here", &name).await.expect("in sight");
        assert_eq!(read.map(|map| mode(&map)).as_deref(), Some("a"));
        let patch = Patch::Merge(json!({"data": {"mode": "b"}}));
        writes.patch(&name, &PatchParams::default(), &patch).await.expect("it is patched");
        let view = informer.read().await.expect("in sight");
        assert_eq!(view.get("here", &name).map(|map| mode(&map)).as_deref(), Some("b"));
        writes.delete("here", &name, &DeleteParams::default()).await.expect("it is deleted");
        let read = informer.read_object("here", &name).await.expect("in sight");
        assert!(read.is_none(), "round {round}");
    }
    // What others write is not waited for, and what was written elsewhere is none of it.
    create(&world.namespace("there").await, "other", "web").await;
    assert_eq!(informer.read().await.expect("nothing is waited for").len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_starts_again_goes_on_from_what_it_saved_without_a_list() {
    let world = World::new().await;
    let maps = world.namespace("here").await;
    for number in 0..50 {
        create(&maps, &format!("map-{number:02}"), "web").await;
    }
    let dir = world.server.dir().join("states");
    let watched = Watched::<ConfigMap>::all().namespace("here").labels("app");
    let factory = || {
        Factory::new(world.connected.clone(), Options { state_dir: Some(dir.clone()), ..Options::default() })
    };
    let first = factory();
    let informer = first.informer(&watched).expect("no index");
    synced(&informer).await;
    // Nobody holds it any more when the factory stops.
    drop(informer);
    in_time("the end", first.stop(Duration::from_secs(5))).await;
    let revision = set_mode(&maps, "map-07", "b").await;
    maps.delete("map-08", &DeleteParams::default()).await.expect("it is deleted");
    let second = factory();
    let informer = second.informer(&watched).expect("no index");
    let mut subscription = informer.subscribe();
    // Whoever looks late finds what happened since in the state already; what is there in the end is the
    // same.
    let told = in_time("the state and what happened since", async {
        let mut modes = BTreeMap::new();
        while modes.len() != 49 || modes.get("map-07").map(String::as_str) != Some("b") {
            match subscription.next().await {
                Notice::Added(map) | Notice::Updated { new: map, .. } => {
                    modes.insert(map.name().to_owned(), mode(&map))
                }
                Notice::Deleted(map) => modes.remove(map.name()),
                _ => None,
            };
        }
        modes
    });
    let modes = told.await;
    assert!(!modes.contains_key("map-08"), "{modes:?}");
    assert!(informer.view().expect("synced").revision() > Some(revision));
    let (_, stats) = &informer.stats()[0];
    assert_eq!((stats.pages_asked, stats.watch_lists_asked, stats.states.len()), (0, 0, 0), "{stats:?}");
    // One that was cut is as if there were none.
    in_time("the end", second.stop(Duration::from_secs(5))).await;
    drop(informer);
    for file in std::fs::read_dir(&dir).expect("the directory") {
        let path = file.expect("a file").path();
        let whole = std::fs::read(&path).expect("it is read");
        std::fs::write(&path, &whole[..whole.len() / 2]).expect("it is cut");
    }
    let third = factory();
    let informer = third.informer(&watched).expect("no index");
    synced(&informer).await;
    let (_, stats) = &informer.stats()[0];
    assert_eq!((stats.watch_lists_asked, stats.states["first"]), (1, 1));
    assert_eq!(informer.view().expect("synced").len(), 49);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_of_kube_runs_on_an_informer_and_reads_the_whole_from_it() {
    use futures_util::StreamExt as _;
    use kube::runtime::controller::Action;
    let world = World::new().await;
    let maps = world.namespace("here").await;
    create(&maps, "one", "web").await;
    let informer = world.mirrored().await;
    let (seen, mut reconciled) = tokio::sync::mpsc::channel(64);
    let reconcile = |object: std::sync::Arc<PartialObjectMeta<ConfigMap>>, context: std::sync::Arc<_>| async move {
        let (informer, seen): &(Informer<ConfigMap>, tokio::sync::mpsc::Sender<String>) = &context;
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let map = informer.view().expect("synced").get(&namespace, &name);
        seen.try_send(format!("{name} {}", map.map_or("gone".into(), |map| mode(&map))))
            .expect("there is room");
        Ok::<_, std::convert::Infallible>(Action::await_change())
    };
    let context = std::sync::Arc::new((informer.clone(), seen));
    let controller = informer.controller().run(reconcile, |_, _, _| Action::await_change(), context);
    let running = tokio::spawn(controller.for_each(|_| std::future::ready(())));
    assert_eq!(in_time("a reconcile", reconciled.recv()).await.as_deref(), Some("one a"));
    set_mode(&maps, "one", "b").await;
    assert_eq!(in_time("a reconcile", reconciled.recv()).await.as_deref(), Some("one b"));
    running.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_has_at_rest_is_kept_in_the_text_that_it_comes_in() {
    let world = World::new().await;
    let maps = world.namespace("here").await;
    for number in 0..100 {
        let (name, text) = (format!("map-{number:02}"), "some text ".repeat(400));
        let map = made(json!({"metadata": {"name": name}, "data": {"mode": "a", "text": text}}));
        maps.create(&PostParams::default(), &map).await.expect("it is created");
    }
    // The server puts them at rest when they were quiet for a while: then each who asks gets them so.
    in_time("a state in runs", async {
        loop {
            let factory = Factory::new(world.connected.clone(), Options::default());
            let informer =
                factory.informer(&Watched::<ConfigMap>::all().namespace("here")).expect("no index");
            synced(&informer).await;
            let view = informer.view().expect("synced");
            assert!(view.len() == 100 && view.iter().all(|map| mode(&map) == "a"));
            let (_, stats) = &informer.stats()[0];
            assert_eq!((stats.objects_taken, stats.protobuf_answers), (100, 0));
            if stats.objects_kept_packed > 60 {
                break;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_wanted_is_not_stored() {
    let world = World::new().await;
    let maps = world.namespace("here").await;
    create(&maps, "one", "web").await;
    set_mode(&maps, "one", "b").await;
    let all = Watched::<ConfigMap>::all().namespace("here").labels("app");
    let whole = world.factory.informer(&all).expect("no index");
    let lean = world.factory.informer(&all.clone().drop_field("metadata.labels")).expect("a path");
    let bare = world.factory.informer(&all.clone().metadata_only()).expect("a path");
    assert!(world.factory.informer(&all.clone().drop_field("metadata[")).is_err());
    let mut held = Vec::new();
    for informer in [&whole, &lean, &bare] {
        synced(informer).await;
        let one = informer.view().expect("synced").get("here", "one").expect("there");
        let object = one.typed().expect("a ConfigMap");
        let (metadata, data) = (&object.metadata, object.data.as_ref());
        held.push((metadata.labels.is_some(), data.is_some(), metadata.uid.is_some()));
    }
    assert_eq!(held, [(true, true, true), (false, true, true), (true, false, true)]);
}
