//! kube-rs, as controllers use it: watcher with both of its ways to begin, reflector, metadata only; what it
//! applies.
//!
//! In: a server shared by the file, a namespace a test. Out: the events that kube-rs tells, in order, and who
//! owns which fields.
//! Never: a wait without a limit.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::OnceLock;
use std::time::Duration;

use forebay_clients::ControlPlane;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, VersionMatch,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{PartialObjectMeta, PartialObjectMetaExt as _};
use kube::runtime::reflector;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

/// Longest wait for an event.
const EVENT_MAX: Duration = Duration::from_secs(120);

/// A client and the namespace `name`, made by it.
async fn client(name: &str) -> Client {
    // Statics are not dropped: the watchdog ends this server with the test process.
    static SERVER: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
    let server = SERVER.get_or_init(ControlPlane::start).as_ref().unwrap_or_else(|why| panic!("{why}"));
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

/// Waits until reads at `resourceVersion=0`, with which kube-rs begins, show all that was written: older is
/// allowed.
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

/// Who owns which fields, in order.
fn owned(managed: Option<&Vec<ManagedFieldsEntry>>) -> Vec<String> {
    let mut all: Vec<_> = managed.into_iter().flatten().map(owned_line).collect();
    all.sort();
    all
}

fn owned_line(entry: &ManagedFieldsEntry) -> String {
    let fields = entry.fields_v1.as_ref().map(|fields| fields.0.to_string());
    [&entry.manager, &entry.operation, &entry.subresource, &fields]
        .map(|part| part.clone().unwrap_or_default())
        .join(" ")
}

/// The `Status` of a request that was refused.
fn refused<T: std::fmt::Debug>(answer: kube::Result<T>) -> kube::core::Status {
    match answer.expect_err("refused") {
        kube::Error::Api(status) => *status,
        other => panic!("{other}"),
    }
}

/// A ConfigMap as it is applied.
fn applied(name: &str, data: serde_json::Value) -> Patch<serde_json::Value> {
    Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}))
}

#[tokio::test]
async fn an_apply_shares_fields_refuses_those_of_others_and_gives_up_its_own() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client("kube-apply").await);
    let (first, second) = (PatchParams::apply("first"), PatchParams::apply("second"));
    maps.patch("shared", &first, &applied("shared", json!({"a": "1", "b": "1"}))).await.expect("created");
    maps.patch("shared", &second, &applied("shared", json!({"a": "1", "c": "1"}))).await.expect("shared");
    let status = refused(maps.patch("shared", &second, &applied("shared", json!({"a": "2"}))).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let causes: Vec<_> = status.details.iter().flat_map(|details| &details.causes).collect();
    let causes: Vec<_> = causes.iter().map(|cause| (cause.field.as_str(), cause.message.as_str())).collect();
    assert_eq!(causes, [(".data.a", "conflict with \"first\"")]);
    let force = second.clone().force();
    let forced = maps.patch("shared", &force, &applied("shared", json!({"a": "2"}))).await.expect("forced");
    let data = |pairs: &[(&str, &str)]| {
        Some(
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
        )
    };
    assert_eq!(forced.data, data(&[("a", "2"), ("b", "1")]));
    assert_eq!(
        owned(forced.metadata.managed_fields.as_ref()),
        [r#"first Apply  {"f:data":{"f:b":{}}}"#, r#"second Apply  {"f:data":{"f:a":{}}}"#]
    );
    let again = maps.patch("shared", &second, &applied("shared", json!({"a": "2"}))).await.expect("the same");
    assert_eq!(again.metadata.resource_version, forced.metadata.resource_version, "nothing was written");
    let given_up = maps.patch("shared", &first, &applied("shared", json!({}))).await.expect("given up");
    assert_eq!(given_up.data, data(&[("a", "2")]));
}

#[tokio::test]
async fn an_apply_that_is_a_dry_run_shows_what_it_would_do() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client("kube-dry-apply").await);
    let apply = PatchParams::apply("first");
    let dry = apply.clone().dry_run();
    let shown = maps.patch("dry", &dry, &applied("dry", json!({"a": "1"}))).await.expect("would create");
    assert_eq!(owned(shown.metadata.managed_fields.as_ref()), [r#"first Apply  {"f:data":{"f:a":{}}}"#]);
    assert!(maps.get_opt("dry").await.expect("no error").is_none());
    let made = maps.patch("dry", &apply, &applied("dry", json!({"a": "1"}))).await.expect("created");
    // Nothing to change is shown as nothing changed, which is how drift is looked for.
    let same = maps.patch("dry", &dry, &applied("dry", json!({"a": "1"}))).await.expect("would not change");
    assert_eq!(same, made);
    let other = maps.patch("dry", &dry, &applied("dry", json!({"a": "2"}))).await.expect("would change");
    assert_eq!(other.data, Some(BTreeMap::from([("a".to_owned(), "2".to_owned())])));
    assert_eq!(maps.get("dry").await.expect("it is there"), made);
}

#[tokio::test]
async fn status_and_scale_are_applied_apart_from_the_rest() {
    let deployments: Api<Deployment> = Api::default_namespaced(client("kube-subresources").await);
    let apply = |rest: serde_json::Value| {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
        object.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
        Patch::Apply(object)
    };
    let spec = json!({
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "main:1"}]}},
    });
    let owner = PatchParams::apply("owner");
    deployments.patch("web", &owner, &apply(json!({"spec": spec}))).await.expect("created");
    let status = apply(json!({"spec": {"replicas": 7}, "status": {"replicas": 2, "conditions": [
        {"type": "Available", "status": "True", "reason": "Tried", "message": "here"},
    ]}}));
    let shown =
        deployments.patch_status("web", &PatchParams::apply("controller"), &status).await.expect("applied");
    let replicas =
        (shown.spec.and_then(|spec| spec.replicas), shown.status.and_then(|status| status.replicas));
    assert_eq!(replicas, (Some(2), Some(2)), "the spec is not the status' to set");
    let scale = Patch::Apply(json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 4},
    }));
    let refusal = refused(deployments.patch_scale("web", &PatchParams::apply("scaler"), &scale).await);
    assert_eq!((refusal.code, refusal.reason.as_str()), (409, "Conflict"));
    let scaler = PatchParams::apply("scaler").force();
    let scaled = deployments.patch_scale("web", &scaler, &scale).await.expect("scaled");
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(4));
    let web = deployments.get("web").await.expect("it is there");
    let lines = owned(web.metadata.managed_fields.as_ref());
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[0],
        r#"controller Apply status {"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{".":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:replicas":{}}}"#
    );
    assert!(lines[1].starts_with("owner Apply  ") && !lines[1].contains("f:replicas"), "{}", lines[1]);
    assert_eq!(lines[2], r#"scaler Apply scale {"f:spec":{"f:replicas":{}}}"#);
}

#[tokio::test]
async fn metadata_is_applied_alone() {
    let client = client("kube-metadata-apply").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.patch("m", &PatchParams::apply("first"), &applied("m", json!({"a": "1"}))).await.expect("created");
    let labels = |value: &str| ObjectMeta {
        name: Some("m".to_owned()),
        labels: Some(BTreeMap::from([("by".to_owned(), value.to_owned())])),
        ..ObjectMeta::default()
    };
    let marker = PatchParams::apply("marker");
    let patch = Patch::Apply(labels("marker").into_request_partial::<ConfigMap>());
    let marked: PartialObjectMeta<ConfigMap> =
        maps.patch_metadata("m", &marker, &patch).await.expect("applied");
    let lines = owned(marked.metadata.managed_fields.as_ref());
    assert_eq!(
        lines,
        [r#"first Apply  {"f:data":{"f:a":{}}}"#, r#"marker Apply  {"f:metadata":{"f:labels":{"f:by":{}}}}"#]
    );
    let other = Patch::Apply(labels("other").into_request_partial::<ConfigMap>());
    let refusal = refused(maps.patch_metadata("m", &PatchParams::apply("other"), &other).await);
    let causes: Vec<_> = refusal.details.iter().flat_map(|details| &details.causes).collect();
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].field, ".metadata.labels.by");
    assert_eq!(
        maps.get("m").await.expect("it is there").data,
        Some(BTreeMap::from([("a".to_owned(), "1".to_owned())]))
    );
}

#[tokio::test]
async fn objects_without_a_type_of_their_own_are_applied() {
    let client = client("kube-dynamic-apply").await;
    let resource = ApiResource::erase::<Lease>(&());
    let leases: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let lease = |holder: &str| {
        let object =
            DynamicObject::new("leader", &resource).data(json!({"spec": {"holderIdentity": holder}}));
        Patch::Apply(object)
    };
    let first = PatchParams::apply("first");
    leases.patch("leader", &first, &lease("a")).await.expect("created");
    leases.patch("leader", &first, &lease("b")).await.expect("its own field");
    let refusal = refused(leases.patch("leader", &PatchParams::apply("second"), &lease("c")).await);
    assert_eq!(
        refusal.message,
        "Apply failed with 1 conflict: conflict with \"first\": .spec.holderIdentity"
    );
    let held =
        leases.patch("leader", &PatchParams::apply("second").force(), &lease("c")).await.expect("forced");
    assert_eq!(held.data["spec"]["holderIdentity"], "c");
    assert_eq!(
        owned(held.metadata.managed_fields.as_ref()),
        [r#"second Apply  {"f:spec":{"f:holderIdentity":{}}}"#]
    );
}
