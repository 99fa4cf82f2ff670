//! kube-rs, as controllers use it: watcher with both of its ways to begin, reflector, metadata only.
//!
//! In: a server shared by the file, a namespace a test. Out: the events that kube-rs tells, in order.
//! Never: a wait without a limit.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::OnceLock;
use std::time::Duration;

use forebay_clients::Server;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, VersionMatch,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

/// Longest wait for an event.
const EVENT_MAX: Duration = Duration::from_secs(120);

/// A client and the namespace `name`, made by it.
async fn client(name: &str) -> Client {
    // Statics are not dropped: the watchdog ends this server with the test process.
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    let server = SERVER.get_or_init(Server::start).as_ref().unwrap_or_else(|why| panic!("{why}"));
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    config.default_namespace = name.to_owned();
    let client = Client::try_from(config).expect("a client");
    let namespace: Namespace = made("v1", "Namespace", name, json!({}));
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("a namespace");
    client
}

fn made<K: serde::de::DeserializeOwned>(version: &str, kind: &str, name: &str, rest: serde_json::Value) -> K {
    let mut object = json!({
        "apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": {"made": "here"}},
    });
    object.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
    serde_json::from_value(object).expect("the kind")
}

fn config_map(name: &str, mode: &str) -> ConfigMap {
    made("v1", "ConfigMap", name, json!({"data": {"mode": mode}}))
}

/// Waits until reads at `resourceVersion=0`, with which kube-rs begins, show all that was written: older is allowed.
async fn settled(maps: &Api<ConfigMap>) {
    let newest = maps.list(&ListParams::default()).await.expect("a list").metadata.resource_version;
    let newest = newest.expect("a list has a resourceVersion");
    let params = ListParams::default().at(&newest).matching(VersionMatch::NotOlderThan);
    maps.list(&params).await.expect("a list as new as that");
}

/// The next `count` events, a word and a name each.
async fn told<K: ResourceExt>(
    events: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
    count: usize,
) -> Vec<String> {
    let mut told = Vec::new();
    while told.len() < count {
        let event = tokio::time::timeout(EVENT_MAX, events.next()).await;
        let event = event.unwrap_or_else(|_| panic!("no event in {EVENT_MAX:?} after {told:?}"));
        told.push(match event.expect("the watch goes on").expect("an event") {
            Event::Init => "init".to_owned(),
            Event::InitApply(object) => format!("init {}", object.name_any()),
            Event::InitDone => "done".to_owned(),
            Event::Apply(object) => format!("apply {}", object.name_any()),
            Event::Delete(object) => format!("delete {}", object.name_any()),
        });
    }
    told
}

/// The same changes, seen through a watcher that begins in `config`'s way.
async fn watcher_sees_changes(namespace: &str, config: watcher::Config) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(namespace).await);
    let create = PostParams::default();
    for name in ["a", "b"] {
        maps.create(&create, &config_map(name, "one")).await.expect("created");
    }
    settled(&maps).await;
    let mut events = pin!(watcher::watcher(maps.clone(), config.labels("made=here")));
    assert_eq!(told(&mut events, 4).await, ["init", "init a", "init b", "done"]);
    maps.create(&create, &config_map("c", "one")).await.expect("created");
    let slow = Patch::Merge(json!({"data": {"mode": "slow"}}));
    maps.patch("a", &PatchParams::default(), &slow).await.expect("patched");
    let unmarked = Patch::Merge(json!({"metadata": {"labels": {"made": null}}}));
    maps.patch("b", &PatchParams::default(), &unmarked).await.expect("patched");
    maps.delete("c", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(told(&mut events, 4).await, ["apply c", "apply a", "delete b", "delete c"]);
}

#[tokio::test]
async fn watcher_begins_with_a_list() {
    watcher_sees_changes("kube-list", watcher::Config::default()).await;
}

#[tokio::test]
async fn watcher_begins_with_pages_of_one() {
    watcher_sees_changes("kube-pages", watcher::Config::default().page_size(1)).await;
}

#[tokio::test]
async fn watcher_begins_with_a_watch_list() {
    watcher_sees_changes("kube-watch-list", watcher::Config::default().streaming_lists()).await;
}

#[tokio::test]
async fn metadata_watcher_sees_metadata_only() {
    let client = client("kube-metadata").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &config_map("a", "one")).await.expect("created");
    let config = watcher::Config::default().labels("made=here").streaming_lists();
    settled(&maps).await;
    let mut events = pin!(watcher::watcher(metadata, config));
    assert_eq!(told(&mut events, 3).await, ["init", "init a", "done"]);
    let note = Patch::Merge(json!({"metadata": {"annotations": {"k": "v"}}}));
    let patched = maps.patch_metadata("a", &PatchParams::default(), &note).await.expect("patched");
    assert_eq!(patched.metadata.annotations, Some(BTreeMap::from([("k".to_owned(), "v".to_owned())])));
    maps.delete("a", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(told(&mut events, 2).await, ["apply a", "delete a"]);
}

#[tokio::test]
async fn reflector_holds_what_the_server_holds() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client("kube-reflector").await);
    for at in 0..20 {
        maps.create(&PostParams::default(), &config_map(&format!("m-{at}"), "one")).await.expect("created");
    }
    settled(&maps).await;
    let (store, writer) = reflector::store();
    let config = watcher::Config::default().labels("made=here").streaming_lists();
    let mut events = pin!(reflector(writer, watcher::watcher(maps.clone(), config)));
    let initial = told(&mut events, 22).await;
    assert_eq!((initial[0].as_str(), initial[21].as_str()), ("init", "done"));
    maps.delete("m-3", &DeleteParams::default()).await.expect("deleted");
    let slow = Patch::Merge(json!({"data": {"mode": "slow"}}));
    maps.patch("m-7", &PatchParams::default(), &slow).await.expect("patched");
    maps.create(&PostParams::default(), &config_map("last", "one")).await.expect("created");
    assert_eq!(told(&mut events, 3).await, ["delete m-3", "apply m-7", "apply last"]);
    let shown = |map: &ConfigMap| (map.name_any(), map.data.clone(), map.metadata.resource_version.clone());
    let mut held: Vec<_> = store.state().iter().map(|map| shown(map.as_ref())).collect();
    let listed = maps.list(&ListParams::default().labels("made=here")).await.expect("a list");
    let mut listed: Vec<_> = listed.items.iter().map(shown).collect();
    held.sort();
    listed.sort();
    assert_eq!(held, listed);
    assert_eq!(held.len(), 20);
}

#[tokio::test]
async fn a_conflict_is_told_and_a_replace_of_the_newest_is_not() {
    let client = client("kube-replace").await;
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let lease: Lease =
        made("coordination.k8s.io/v1", "Lease", "leader", json!({"spec": {"holderIdentity": "a"}}));
    let first = leases.create(&PostParams::default(), &lease).await.expect("created");
    let mut second = first.clone();
    second.spec.get_or_insert_default().holder_identity = Some("b".to_owned());
    leases.replace("leader", &PostParams::default(), &second).await.expect("replaced");
    let why = leases.replace("leader", &PostParams::default(), &first).await.expect_err("a conflict");
    let kube::Error::Api(status) = why else { panic!("{why}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    // The same object without its type: what a controller of any kind does.
    let resource = ApiResource::erase::<Lease>(&());
    let leases: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let held = leases.get("leader").await.expect("it is there");
    assert_eq!(held.data["spec"]["holderIdentity"], "b");
    let why = leases.get("nothing").await.expect_err("nothing there");
    let kube::Error::Api(status) = why else { panic!("{why}") };
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    assert!(leases.get_opt("nothing").await.expect("no error").is_none());
}
