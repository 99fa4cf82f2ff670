//! The end of a CRD: what goes with it, what does not, and what it says meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_apimachinery::Reason;
use forebay_apimachinery::options::DeleteOptions;
use forebay_backend::Backend as _;
use forebay_catalog::store::Store;
use forebay_rt::Duration;
use serde_json::{Value, json};

use crate::hooks::Hooks;
use crate::store::Way;
use crate::world::{MINUTE, World, rv};

const CRDS: &str = "/apiextensions.k8s.io/v1/customresourcedefinitions";
const APISERVICES: &str = "/apiregistration.k8s.io/v1/apiservices";
const TABS: &str = "/stable.io/v1/tabs";
const SECOND: Duration = Duration::from_secs(1);
const HOLD: &str = "example.com/hold";

/// A version whose objects have a text of this name in their spec.
fn version(name: &str, text: &str, is_stored: bool) -> Value {
    let spec = json!({ "type": "object", "properties": { text: { "type": "string" } } });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    json!({ "name": name, "served": true, "storage": is_stored, "schema": { "openAPIV3Schema": schema } })
}

fn definition(group: &str, plural: &str, kind: &str, versions: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": { "api-approved.kubernetes.io": "unapproved, testing only" },
        },
        "spec": {
            "group": group, "scope": "Cluster", "versions": versions,
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind },
        },
    })
}

/// Tabs, served as v1.
async fn define_tabs(world: &World) {
    let tabs = definition("stable.io", "tabs", "Tab", json!([version("v1", "old", true)]));
    world.create(CRDS, tabs).await.expect("a definition");
}

async fn create_tab(world: &World, name: &str, finalizers: Value) -> Value {
    let metadata = json!({ "name": name, "finalizers": finalizers });
    let tab = json!({
        "apiVersion": "stable.io/v1", "kind": "Tab", "metadata": metadata, "spec": { "old": "x" },
    });
    world.create(TABS, tab).await.expect("a tab").0
}

fn tabs_store(world: &World) -> Arc<Store> {
    world.target(TABS).served.store.clone().expect("stored")
}

/// The tab as the store has it.
async fn stored(world: &World, store: &Store, name: &str) -> Option<Value> {
    let found = world.store.get(&store.key("", name)).await.expect("reads")?;
    Some(serde_json::from_slice(&found.value).expect("JSON"))
}

async fn crd(world: &World, name: &str) -> Option<Value> {
    match world.get(&format!("{CRDS}/{name}"), "").await {
        Ok(crd) => Some(crd),
        Err(status) if status.reason == Reason::NotFound => None,
        Err(status) => panic!("{}", status.message),
    }
}

/// Its status, reason, message and time.
fn terminating(crd: &Value) -> [String; 4] {
    let conditions = crd["status"]["conditions"].as_array().expect("conditions");
    let found = conditions.iter().find(|condition| condition["type"] == "Terminating").expect("it is there");
    ["status", "reason", "message", "lastTransitionTime"]
        .map(|member| found[member].as_str().unwrap_or_default().to_owned())
}

async fn said_by_tabs(world: &World) -> [String; 4] {
    terminating(&crd(world, "tabs.stable.io").await.expect("it waits"))
}

/// A CRD that has the place of a built-in resource takes nothing of it and serves nothing of it.
async fn check_built_in(group: &str, plural: &str, path: &str, known: &str) {
    let world = World::new().await;
    define_tabs(&world).await;
    create_tab(&world, "a", json!([])).await;
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": "v1.example.com" },
        "spec": { "group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100 },
    });
    world.create(APISERVICES, service).await.expect("a service");
    let before = world.get(&format!("{path}/{known}"), "").await.expect("is there");

    let versions = json!([version("v1", "foo", true), version("v2", "foo", false)]);
    let mut overlapping = definition(group, plural, "Custom", versions);
    overlapping["metadata"]["finalizers"] = json!([HOLD]);
    let name = format!("{plural}.{group}");
    world.create(CRDS, overlapping).await.expect("a definition");
    world.settle().await;
    let conditions = crd(&world, &name).await.expect("is there")["status"]["conditions"].clone();
    let established = conditions
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    assert!(established, "{conditions}");
    let catalog = world.registry.catalog();
    let served: Vec<_> = catalog.iter().filter(|served| served.is(group, plural)).collect();
    assert!(served.len() == 1 && !served[0].is_custom() && &*served[0].gvr.version == "v1");
    let patch = json!({ "metadata": { "annotations": { "test": "updated" } } });
    world.merge(&format!("{CRDS}/{name}"), patch).await.expect("is patched as what it is");

    world.delete(CRDS, &name).await;
    world.pass(2 * MINUTE).await;
    let ended = crd(&world, &name).await.expect("somebody else holds it");
    assert_eq!(ended["metadata"]["finalizers"], json!([HOLD]));
    let why = "instances overlap with built-in resources in storage";
    assert_eq!(terminating(&ended)[..3], ["False", "OverlappingBuiltInResource", why]);
    let released = json!({ "metadata": { "finalizers": null } });
    world.merge(&format!("{CRDS}/{name}"), released).await.expect("is released");
    world.pass(MINUTE).await;
    assert!(crd(&world, &name).await.is_none());
    let after = world.get(&format!("{path}/{known}"), "").await.expect("is there still");
    assert_eq!(after, before);
    assert_eq!(world.names(TABS, "").await.0, "a", "and what it defines");
}

#[tokio::test(start_paused = true)]
async fn no_definition_goes_with_a_crd_that_has_the_place_of_definitions() {
    check_built_in("apiextensions.k8s.io", "customresourcedefinitions", CRDS, "tabs.stable.io").await;
}

#[tokio::test(start_paused = true)]
async fn no_service_goes_with_a_crd_that_has_the_place_of_services() {
    check_built_in("apiregistration.k8s.io", "apiservices", APISERVICES, "v1.example.com").await;
}

/// What an earlier server stored for such a CRD is deleted with it.
#[tokio::test(start_paused = true)]
async fn a_crd_that_has_the_name_of_a_built_in_resource_serves_nothing_and_takes_its_own() {
    let world = World::new().await;
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e" }, "reason": "R",
        "involvedObject": { "kind": "Pod", "name": "p", "namespace": "default" },
    });
    world.create("/v1/events/default", event).await.expect("an event");
    let versions = json!([version("v1", "foo", false), version("v2", "foo", true)]);
    world
        .create(CRDS, definition("events.k8s.io", "events", "Custom", versions))
        .await
        .expect("a definition");
    assert!(world.registry.catalog().resource("events.k8s.io", "v2", "events").is_none());
    let own = forebay_apimachinery::Key::from("/registry/events.k8s.io/events/own");
    let text = r#"{"apiVersion":"events.k8s.io/v2","kind":"Custom","metadata":{"name":"own","uid":"u"}}"#;
    let op = forebay_backend::Op::Put { value: text.into(), ttl: None };
    let txn = forebay_backend::Txn { key: own.clone(), expect: forebay_backend::Expect::Absent, op };
    world.store.commit(txn).await.expect("is stored");
    world.delete(CRDS, "events.events.k8s.io").await;
    world.pass(MINUTE).await;
    assert!(crd(&world, "events.events.k8s.io").await.is_none());
    assert!(world.store.get(&own).await.expect("reads").is_none());
    assert_eq!(world.names("/v1/events/default", "").await.0, "e");
}

/// Moves `spec.old` of v1 to `spec.new` of v2 and back, while it is there.
fn converter(is_there: &Arc<AtomicBool>) -> Arc<Hooks> {
    let is_there = is_there.clone();
    Hooks::new(move |request| {
        if !is_there.load(Ordering::Relaxed) {
            return None;
        }
        let to = &request["desiredAPIVersion"];
        let (from, into) = if to == "stable.io/v2" { ("old", "new") } else { ("new", "old") };
        let convert = |object: &Value| {
            let mut made = object.clone();
            made["apiVersion"] = to.clone();
            made["spec"] = json!({ into: object["spec"][from] });
            made
        };
        let objects: Vec<Value> = request["objects"].as_array()?.iter().map(convert).collect();
        Some(json!({ "convertedObjects": objects, "result": { "status": "Success" } }))
    })
}

#[tokio::test(start_paused = true)]
async fn an_object_that_only_a_webhook_converts_keeps_all_it_has_while_its_crd_goes() {
    let is_there = Arc::new(AtomicBool::new(false));
    let hooks = converter(&is_there);
    let world = World::configured(hooks.config()).await;
    define_tabs(&world).await;
    create_tab(&world, "free", json!([])).await;
    create_tab(&world, "held", json!([HOLD])).await;
    let versions = json!([version("v1", "old", false), version("v2", "new", true)]);
    let webhook = json!({
        "clientConfig": { "url": "https://127.0.0.1:1/convert" }, "conversionReviewVersions": ["v1"],
    });
    let conversion = json!({ "strategy": "Webhook", "webhook": webhook });
    let change = json!({ "spec": { "versions": versions, "conversion": conversion } });
    let path = format!("{CRDS}/tabs.stable.io");
    world.merge(&path, change).await.expect("another version is stored from now on");
    let store = tabs_store(&world);
    let before = stored(&world, &store, "held").await.expect("is there");
    assert_eq!((&before["apiVersion"], &before["spec"]), (&json!("stable.io/v1"), &json!({ "old": "x" })));

    // The webhook went with its operator.
    world.delete(CRDS, "tabs.stable.io").await;
    world.pass(2 * SECOND).await;
    assert!(stored(&world, &store, "free").await.is_none());
    let mut held = stored(&world, &store, "held").await.expect("somebody holds it");
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    let metadata = held["metadata"].as_object_mut().expect("metadata");
    assert_eq!(metadata.remove("deletionGracePeriodSeconds"), Some(json!(0)));
    metadata.remove("deletionTimestamp");
    metadata.insert("generation".into(), before["metadata"]["generation"].clone());
    assert_eq!(held, before);
    assert_eq!(hooks.calls(), 0, "nobody needs to be asked for that");

    is_there.store(true, Ordering::Relaxed);
    let shown = world.get("/stable.io/v2/tabs/held", "").await.expect("is converted");
    assert_eq!(shown["spec"], json!({ "new": "x" }));
    let released = json!({ "metadata": { "finalizers": null } });
    world.merge("/stable.io/v2/tabs/held", released).await.expect("is released");
    world.pass(2 * SECOND).await;
    assert!(crd(&world, "tabs.stable.io").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_not_asked_about_what_goes_with_a_crd() {
    let hooks = Hooks::new(|_| None);
    let world = World::configured(hooks.config()).await;
    define_tabs(&world).await;
    let free = create_tab(&world, "free", json!([])).await;
    let held = create_tab(&world, "held", json!([HOLD])).await;
    for sort in ["Mutating", "Validating"] {
        let hook = json!({
            "name": "w.example.com", "clientConfig": { "url": "https://127.0.0.1:1/w" },
            "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "rules": [{ "apiGroups": ["stable.io"], "apiVersions": ["*"], "operations": ["DELETE"],
                "resources": ["tabs"] }],
        });
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{sort}WebhookConfiguration"),
            "metadata": { "name": "c" }, "webhooks": [hook],
        });
        let resource = format!("{}webhookconfigurations", sort.to_lowercase());
        let path = format!("/admissionregistration.k8s.io/v1/{resource}");
        world.create(&path, configuration).await.expect("a configuration");
    }
    let one = world.target(&format!("{TABS}/free"));
    world.registry.delete(&one, &DeleteOptions::default()).await.map(drop).expect_err("the webhook is gone");
    assert_eq!(hooks.calls(), 1);

    let mut watch = world.watch(TABS, &format!("watch=1&resourceVersion={}", rv(&held))).await;
    world.delete(CRDS, "tabs.stable.io").await;
    world.pass(2 * SECOND).await;
    assert_eq!(hooks.calls(), 0);
    let told = watch.frames().await;
    assert_eq!(
        told.iter().map(|frame| frame["type"].as_str()).collect::<Vec<_>>(),
        [Some("DELETED"), Some("MODIFIED")]
    );
    let mut last = told[0]["object"].clone();
    last["metadata"]["resourceVersion"] = free["metadata"]["resourceVersion"].clone();
    assert_eq!(last, free);
    let mut marked = held.clone();
    for member in ["deletionTimestamp", "resourceVersion"] {
        marked["metadata"][member] = told[1]["object"]["metadata"][member].clone();
    }
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    marked["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    marked["metadata"]["generation"] = json!(2);
    assert_eq!(told[1]["object"], marked);

    world
        .merge(&format!("{TABS}/held"), json!({ "metadata": { "finalizers": null } }))
        .await
        .expect("released");
    world.pass(2 * SECOND).await;
    assert!(crd(&world, "tabs.stable.io").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_crd_says_why_it_waits() {
    let world = World::new().await;
    define_tabs(&world).await;
    create_tab(&world, "held", json!([HOLD])).await;
    let own = json!({ "metadata": { "finalizers": [HOLD] } });
    world.merge(&format!("{CRDS}/tabs.stable.io"), own).await.expect("is held");
    world.pass(SECOND).await;
    world.delete(CRDS, "tabs.stable.io").await;
    world.pass(30 * SECOND).await;
    let progress = ["True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"];
    let said = said_by_tabs(&world).await;
    let [.., began] = said.clone();
    assert_eq!(said[..3], progress);

    let checked = [
        "True",
        "InstanceDeletionCheck",
        "could not confirm zero CustomResources remaining: context deadline exceeded",
    ];
    for _ in 0..5 {
        world.pass(MINUTE).await;
        let said = said_by_tabs(&world).await;
        assert_eq!(said[..3], checked);
        assert_eq!(said[3], began, "its status is the same");
    }

    world.set(|faults| faults.barrier = Way::Leaderless);
    world.pass(MINUTE).await;
    let [status, reason, message, _] = said_by_tabs(&world).await;
    assert_eq!((&*status, &*reason), ("True", "InstanceDeletionFailed"));
    assert!(message.starts_with("could not list instances: "), "{message}");
    world.set(|faults| faults.barrier = Way::Open);
    world.pass(30 * SECOND).await;
    assert_eq!(said_by_tabs(&world).await[..3], progress);

    world
        .merge(&format!("{TABS}/held"), json!({ "metadata": { "finalizers": null } }))
        .await
        .expect("released");
    world.pass(2 * SECOND).await;
    let said = said_by_tabs(&world).await;
    assert_eq!(said[..3], ["False", "InstanceDeletionCompleted", "removed all instances"]);
    assert_ne!(said[3], began);
    let path = format!("{CRDS}/tabs.stable.io");
    world.merge(&path, json!({ "metadata": { "finalizers": null } })).await.expect("is released");
    world.settle().await;
    assert!(crd(&world, "tabs.stable.io").await.is_none());
}

/// An object that is as large as one may be, so that there is no room to say that it is being deleted.
#[tokio::test(start_paused = true)]
async fn a_crd_says_that_an_object_cannot_be_deleted() {
    let world = World::new().await;
    define_tabs(&world).await;
    create_tab(&world, "full", json!([HOLD])).await;
    let store = tabs_store(&world);
    let length =
        async || world.store.get(&store.key("", "full")).await.expect("reads").expect("there").value.len();
    let full = world.store.value_bytes_max() - length().await;
    let path = format!("{TABS}/full");
    world.merge(&path, json!({ "spec": { "old": "x".repeat(full) } })).await.expect("fits");
    assert!(world.store.value_bytes_max() - length().await < 16);
    world.delete(CRDS, "tabs.stable.io").await;
    world.pass(3 * SECOND).await;
    let [status, reason, message, _] = said_by_tabs(&world).await;
    assert_eq!((&*status, &*reason), ("True", "InstanceDeletionFailed"));
    assert!(message.starts_with("could not issue all deletes: "), "{message}");
    // Another version is stored meanwhile, which has what the first has not.
    world.set(|faults| faults.barrier = Way::Silent);
    let versions = json!([version("v1", "old", false), version("v2", "new", true)]);
    let change = json!({ "spec": { "versions": versions } });
    world.merge(&format!("{CRDS}/tabs.stable.io"), change).await.expect("it is there still");
    let path = path.replace("/v1/", "/v2/");
    world.merge(&path, json!({ "spec": { "new": "y" } })).await.expect("is smaller");
    world.set(|faults| faults.barrier = Way::Open);
    world.pass(30 * SECOND).await;
    assert_eq!(said_by_tabs(&world).await[1], "InstanceDeletionInProgress");
    let full = stored(&world, &store, "full").await.expect("somebody holds it");
    assert!(full["metadata"]["deletionTimestamp"].is_string());
    assert_eq!((&full["apiVersion"], &full["spec"]), (&json!("stable.io/v2"), &json!({ "new": "y" })));
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_served_nothing_says_so() {
    let world = World::new().await;
    define_tabs(&world).await;
    // Its kind is taken, so that it is never established.
    let mut other = definition("stable.io", "tablets", "Tab", json!([version("v1", "old", true)]));
    other["metadata"]["finalizers"] = json!([HOLD]);
    world.create(CRDS, other).await.expect("a definition");
    world.delete(CRDS, "tablets.stable.io").await;
    world.pass(2 * SECOND).await;
    let said = terminating(&crd(&world, "tablets.stable.io").await.expect("somebody holds it"));
    assert_eq!(said[..3], ["False", "NeverEstablished", "resource was never established"]);
}
