//! The verbs on the embedded engine in memory, without HTTP.

mod chunking;
mod custom;
mod identity;
mod lasting;
mod owners;
mod patch;
mod put_creates;
mod rights;
mod values;

use std::sync::Arc;

use forebay_api::{Answer, Body, PatchKind};
use forebay_apimachinery::options::{
    CreateOptions, DeleteOptions, FieldValidation, ListOptions, PatchOptions, Query, UpdateOptions,
};
use forebay_apimachinery::{Lease, Reason, Status};
use forebay_backend::Backend;
use forebay_catalog::Target;
use forebay_embedded::{Engine, Options};
use forebay_reads::{As, Step};
use forebay_registry::{Config, Registry};
use forebay_rt::{Clock, Duration, Random, Tasks};
use serde_json::{Value, json};

struct World {
    registry: Registry,
    engine: Arc<Engine>,
    tasks: Tasks,
}

impl World {
    async fn new() -> World {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let engine =
            Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
        World::on(engine, clock).await
    }

    async fn on(engine: Arc<Engine>, clock: Clock) -> World {
        World::behind(engine.clone(), engine, clock).await
    }

    /// On a store whose engine it is.
    async fn behind(backend: Arc<dyn Backend>, engine: Arc<Engine>, clock: Clock) -> World {
        let config = Config { event_ttl: Some(Duration::from_secs(3600)), ..Config::default() };
        let tasks = Tasks::new();
        let registry = Registry::new(config, backend, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, engine, tasks }
    }

    fn target(&self, path: &str) -> Target {
        let mut parts = path.split('/');
        let mut next = || parts.next().filter(|part| !part.is_empty()).map(String::from);
        let gv = next().expect("group@version");
        let (group, version) = gv.split_once('@').expect("group@version");
        let resource = next().expect("a resource");
        let served = self.registry.catalog().resource(group, version, &resource).expect("served").clone();
        let namespace = if served.namespaced { next() } else { None };
        Target {
            served,
            namespace,
            name: next(),
            subresource: next(),
            caller: None,
            lease: Lease::of_server(),
            context: forebay_catalog::RequestContext::default(),
        }
    }

    async fn create(&self, path: &str, body: Value) -> Result<Value, Status> {
        self.registry.create(&self.target(path), &text(body), &CreateOptions::default()).await.map(object)
    }

    async fn update(&self, path: &str, body: Value) -> Result<Value, Status> {
        self.registry.update(&self.target(path), &text(body), &UpdateOptions::default()).await.map(object)
    }

    async fn patch(&self, path: &str, kind: PatchKind, body: Value) -> Result<Value, Status> {
        self.registry
            .patch(&self.target(path), kind, body.to_string().as_bytes(), &PatchOptions::default())
            .await
            .map(object)
    }

    async fn delete(&self, path: &str) -> Result<Value, Status> {
        self.registry.delete(&self.target(path), &DeleteOptions::default()).await.map(object)
    }

    async fn delete_collection(&self, path: &str) -> Result<Value, Status> {
        let target = self.target(path);
        let everything = ListOptions::default();
        self.registry.delete_collection(&target, &everything, &DeleteOptions::default()).await.map(object)
    }

    async fn get(&self, path: &str) -> Result<Value, Status> {
        let target = self.target(path);
        let found = self.registry.get(&target, "").await?;
        target.served.to_value(&found)
    }

    async fn list(&self, path: &str, query: &str) -> Result<Value, Status> {
        let options = ListOptions::from_query(&Query::parse(query))?;
        let mut body = self.registry.list(&self.target(path), &options, As::Object).await?;
        let mut out = Vec::new();
        while body.next_chunk(64, &mut out) {}
        Ok(serde_json::from_slice(&out).expect("a list is JSON"))
    }

    /// The frames of a watch until `last` holds for one.
    async fn watch(&self, path: &str, query: &str, last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let options = ListOptions::from_query(&Query::parse(query)).expect("options");
        let mut body =
            self.registry.watch(&self.target(path), &options, As::Object, false).await.expect("starts");
        let mut frames: Vec<Value> = Vec::new();
        while !frames.last().is_some_and(&last) {
            let mut out = Vec::new();
            let step = body.next(64, &mut out).await;
            frames.extend(
                out.split(|byte| *byte == b'\n')
                    .filter(|line| !line.is_empty())
                    .map(|line| serde_json::from_slice::<Value>(line).expect("a frame is JSON")),
            );
            if step == Step::End {
                break;
            }
        }
        frames
    }
}

fn text(body: Value) -> Body {
    Body::Json(body.to_string().into())
}

fn object(answer: Answer) -> Value {
    serde_json::from_slice(&answer.outcome.json()).expect("an answer is JSON")
}

fn configmap(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

fn rv(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().expect("a resourceVersion")
}

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap_or(""))
        .collect()
}

const CM: &str = "@v1/configmaps/default";

#[tokio::test]
async fn an_object_comes_back_as_it_was_sent() {
    let world = World::new().await;
    let created = world.create(CM, configmap("a", json!({ "k": "v<>&" }))).await.expect("creates");
    assert_eq!(created["metadata"]["creationTimestamp"], "2023-11-14T22:13:20Z");
    assert_eq!(created["metadata"]["namespace"], "default");
    assert_eq!(world.get("@v1/configmaps/default/a").await.expect("is there"), created);
    let list = world.list(CM, "").await.expect("lists");
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["items"][0]["data"]["k"], "v<>&");
    assert!(list["items"][0].get("kind").is_none(), "items of a built-in list go without their type");
    assert_eq!(
        world.create(CM, configmap("a", json!({}))).await.expect_err("exists").reason,
        Reason::AlreadyExists
    );
}

#[tokio::test]
async fn a_no_op_update_writes_nothing() {
    let world = World::new().await;
    let created = world.create(CM, configmap("a", json!({ "k": "v" }))).await.expect("creates");
    let same = world.update("@v1/configmaps/default/a", created.clone()).await.expect("updates");
    assert_eq!(same, created);
    let patch = json!({ "data": { "k": "v" } });
    let patched = world.patch("@v1/configmaps/default/a", PatchKind::Merge, patch).await.expect("patches");
    assert_eq!(patched, created);
}

#[tokio::test]
async fn a_stale_update_is_a_conflict_and_changes_nothing() {
    let world = World::new().await;
    let first = world.create(CM, configmap("a", json!({ "k": "1" }))).await.expect("creates");
    let mut second = first.clone();
    second["data"]["k"] = json!("2");
    let second = world.update("@v1/configmaps/default/a", second).await.expect("updates");
    let mut stale = first;
    stale["data"]["k"] = json!("3");
    let refused = world.update("@v1/configmaps/default/a", stale).await.expect_err("stale");
    assert_eq!(refused.reason, Reason::Conflict);
    assert_eq!(
        refused.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    assert_eq!(world.get("@v1/configmaps/default/a").await.expect("is there"), second);
    let unconditional = world.update("@v1/configmaps/default/a", configmap("a", json!({ "k": "4" }))).await;
    assert_eq!(unconditional.expect("is allowed")["data"]["k"], "4");
}

#[tokio::test]
async fn concurrent_patches_of_one_object_all_succeed() {
    let world = Arc::new(World::new().await);
    world.create(CM, configmap("a", json!({}))).await.expect("creates");
    let patches: Vec<_> = (0..50)
        .map(|number| {
            let world = world.clone();
            let patch = json!({ "data": { format!("k{number}"): "v" } });
            tokio::spawn(
                async move { world.patch("@v1/configmaps/default/a", PatchKind::Merge, patch).await },
            )
        })
        .collect();
    for patch in patches {
        patch.await.expect("not cancelled").expect("succeeds");
    }
    let object = world.get("@v1/configmaps/default/a").await.expect("is there");
    assert_eq!(object["data"].as_object().expect("data").len(), 50);
}

#[tokio::test]
async fn pages_show_one_state_while_writes_go_on() {
    let world = World::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        world.create(CM, configmap(name, json!({}))).await.expect("creates");
    }
    let first = world.list(CM, "limit=2").await.expect("lists");
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(3)));
    world.delete("@v1/configmaps/default/c").await.expect("deletes");
    world.create(CM, configmap("cc", json!({}))).await.expect("creates");
    let token = first["metadata"]["continue"].as_str().expect("a token");
    let second = world.list(CM, &format!("limit=2&continue={token}")).await.expect("lists");
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(rv(&second), rv(&first));
    let token = second["metadata"]["continue"].as_str().expect("a token");
    let third = world.list(CM, &format!("limit=2&continue={token}")).await.expect("lists");
    assert_eq!(names(&third), ["e"]);
    assert!(third["metadata"].get("continue").is_none());
    assert_eq!(names(&world.list(CM, "").await.expect("lists")), ["a", "b", "cc", "d", "e"]);
    let exact = format!("resourceVersion={}&resourceVersionMatch=Exact", rv(&first));
    assert_eq!(names(&world.list(CM, &exact).await.expect("lists")), ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn selectors_pick_by_label_and_field() {
    let world = World::new().await;
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web")] {
        let mut object = configmap(name, json!({}));
        object["metadata"]["labels"] = json!({ "app": app });
        world.create(CM, object).await.expect("creates");
    }
    assert_eq!(names(&world.list(CM, "labelSelector=app%3Dweb").await.expect("lists")), ["a", "c"]);
    assert_eq!(names(&world.list(CM, "labelSelector=app+notin+(web)").await.expect("lists")), ["b"]);
    assert_eq!(names(&world.list(CM, "fieldSelector=metadata.name%3Db").await.expect("lists")), ["b"]);
    let refused = world.list(CM, "fieldSelector=data.k%3Db").await.expect_err("not a selectable field");
    assert_eq!(refused.reason, Reason::BadRequest);
    assert!(refused.message.contains("data.k"), "{}", refused.message);
}

#[tokio::test]
async fn a_watch_of_one_value_reads_a_lane_of_its_own() {
    let world = World::new().await;
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "shirts.stable.io" },
        "spec": {
            "group": "stable.io", "scope": "Namespaced", "names": { "plural": "shirts", "kind": "Shirt" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "selectableFields": [{ "jsonPath": ".spec.color" }],
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                    "type": "object", "properties": { "color": { "type": "string" } } } } } },
            }],
        },
    });
    world.create("apiextensions.k8s.io@v1/customresourcedefinitions", crd).await.expect("valid");
    let lanes = |path: &str| world.target(path).served.store.as_ref().map(|store| store.cacher.lanes());
    let mut open = Vec::new();
    for (path, selector, expected) in [
        ("@v1/pods", "", 0),
        ("@v1/pods", "spec.nodeName!=n1", 0),
        ("@v1/pods", "spec.nodeName=n1", 1),
        ("@v1/pods", "spec.host=n1,status.phase=Running", 1),
        ("@v1/pods/default", "spec.nodeName=n1", 1),
        ("@v1/pods", "spec.nodeName=n2", 2),
        ("@v1/pods", "metadata.name=x", 3),
        ("@v1/pods/default", "metadata.name=x", 4),
        ("@v1/pods/default/x", "", 4),
        ("@v1/pods/default", "", 5),
        ("@v1/pods", "metadata.namespace=default", 5),
        ("@v1/pods", "status.phase=Running", 6),
        ("stable.io@v1/shirts", "spec.color=blue", 1),
        ("stable.io@v1/shirts/default", "spec.color=red", 2),
    ] {
        let query = format!("watch=1&fieldSelector={}", selector.replace('=', "%3D"));
        let options = ListOptions::from_query(&Query::parse(&query)).expect("options");
        let target = world.target(path);
        open.push(world.registry.watch(&target, &options, As::Object, false).await.expect("starts"));
        assert_eq!(lanes(path), Some(expected), "{path} {selector}");
    }
    for (name, color) in [("a", "blue"), ("b", "red"), ("c", "blue")] {
        let shirt = json!({ "apiVersion": "stable.io/v1", "kind": "Shirt", "metadata": { "name": name }, "spec": { "color": color } });
        world.create("stable.io@v1/shirts/default", shirt).await.expect("valid");
    }
    let blue = world.list("stable.io@v1/shirts", "fieldSelector=spec.color%3Dblue").await.expect("lists");
    assert_eq!(names(&blue), ["a", "c"]);
}

#[tokio::test]
async fn a_watch_list_ends_its_state_with_a_bookmark_and_goes_on() {
    let world = World::new().await;
    world.create(CM, configmap("b", json!({}))).await.expect("creates");
    let a = world.create(CM, configmap("a", json!({}))).await.expect("creates");
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let frames = world.watch(CM, query, |frame| frame["type"] == "BOOKMARK").await;
    let shown: Vec<String> = frames
        .iter()
        .map(|frame| format!("{} {}", frame["type"], frame["object"]["metadata"]["name"]))
        .collect();
    assert_eq!(shown, ["\"ADDED\" \"a\"", "\"ADDED\" \"b\"", "\"BOOKMARK\" null"]);
    let bookmark = &frames[2]["object"];
    assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!((rv(bookmark), bookmark["kind"].as_str()), (rv(&a), Some("ConfigMap")));
}

#[tokio::test]
async fn a_watch_that_means_to_stay_gets_a_bookmark_as_soon_as_it_has_everything() {
    let world = World::new().await;
    let created = world.create(CM, configmap("a", json!({}))).await.expect("creates");
    // Of another resource: the bookmark is newer than the last event.
    let now = rv(&world
        .create(
            "@v1/secrets/default",
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } }),
        )
        .await
        .expect("creates"))
    .to_owned();
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let resumed = format!("resourceVersion={}", rv(&created));
    for (query, want) in [(resumed.as_str(), "BOOKMARK"), (initial, "ADDED BOOKMARK BOOKMARK")] {
        let query = format!("watch=1&{query}&allowWatchBookmarks=true&timeoutSeconds=300");
        let plain = |frame: &Value| {
            frame["type"] == "BOOKMARK" && frame["object"]["metadata"]["annotations"].is_null()
        };
        let frames = world.watch(CM, &query, plain).await;
        let kinds: Vec<&str> = frames.iter().filter_map(|frame| frame["type"].as_str()).collect();
        assert_eq!(kinds.join(" "), want, "{query}");
        assert_eq!(rv(&frames[frames.len() - 1]["object"]), now, "{query}");
    }
}

#[tokio::test]
async fn a_deleted_event_carries_the_last_state_and_the_deletes_revision() {
    let world = World::new().await;
    let created = world.create(CM, configmap("a", json!({ "k": "v" }))).await.expect("creates");
    world.delete("@v1/configmaps/default/a").await.expect("deletes");
    let query = format!("watch=1&resourceVersion={}", rv(&created));
    let frames = world.watch(CM, &query, |frame| frame["type"] == "DELETED").await;
    let last = frames.last().expect("an event");
    assert_eq!(last["object"]["data"]["k"], "v");
    assert!(rv(&last["object"]).parse::<u64>().expect("a number") > rv(&created).parse().expect("a number"));
    assert_eq!(
        world.get("@v1/configmaps/default/a").await.expect_err("gone").message,
        "configmaps \"a\" not found"
    );
}

#[tokio::test]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let world = World::new().await;
    let mut object = configmap("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create(CM, object).await.expect("creates");
    let held = world.delete("@v1/configmaps/default/a").await.expect("begins");
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    let release = json!({ "metadata": { "finalizers": null, "labels": { "last": "words" } } });
    let released =
        world.patch("@v1/configmaps/default/a", PatchKind::Merge, release).await.expect("releases");
    let mut shown = held.clone();
    shown["metadata"].as_object_mut().expect("metadata").remove("finalizers");
    shown["metadata"]["labels"] = json!({ "last": "words" });
    let owned = json!({ "f:metadata": { "f:labels": { ".": {}, "f:last": {} } } });
    shown["metadata"]["managedFields"][0]["fieldsV1"] = owned;
    assert_eq!(released, shown, "as it was asked for, at the revision that it was stored at");
    assert_eq!(world.get("@v1/configmaps/default/a").await.expect_err("gone").reason, Reason::NotFound);
}

#[tokio::test]
async fn what_goes_with_its_collection_is_shown_unless_it_is_too_much() {
    let world = World::new().await;
    let data = json!({ "k": "x".repeat(900_000) });
    let fill = async |count: usize| {
        for number in 0..count {
            world.create(CM, configmap(&format!("m{number}"), data.clone())).await.expect("creates");
        }
    };
    fill(4).await;
    let shown = world.delete_collection(CM).await.expect("deletes");
    assert_eq!((&shown["kind"], names(&shown)), (&json!("ConfigMapList"), vec!["m0", "m1", "m2", "m3"]));
    assert!(names(&world.list(CM, "").await.expect("lists")).is_empty());
    fill(7).await;
    let told = world.delete_collection(CM).await.expect("deletes");
    let success = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": { "kind": "configmaps" },
    });
    assert_eq!(told, success);
    assert!(names(&world.list(CM, "").await.expect("lists")).is_empty(), "all of them are gone");
}

#[tokio::test]
async fn a_definition_of_which_no_version_is_served_takes_its_objects_with_it() {
    let world = World::new().await;
    let definitions = "apiextensions.k8s.io@v1/customresourcedefinitions";
    let path = format!("{definitions}/shirts.stable.io");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "shirts.stable.io" },
        "spec": {
            "group": "stable.io", "scope": "Namespaced", "names": { "plural": "shirts", "kind": "Shirt" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    world.create(definitions, definition.clone()).await.expect("valid");
    let shirt = json!({ "apiVersion": "stable.io/v1", "kind": "Shirt", "metadata": { "name": "a" } });
    world.create("stable.io@v1/shirts/default", shirt).await.expect("valid");
    let patch = json!([{ "op": "replace", "path": "/spec/versions/0/served", "value": false }]);
    let unserved = world.patch(&path, PatchKind::Json, patch).await.expect("valid");
    assert!(world.registry.catalog().resource("stable.io", "v1", "shirts").is_none());
    world.delete(&path).await.expect("begins");
    let query = format!("watch=1&resourceVersion={}", rv(&unserved));
    world.watch(definitions, &query, |frame| frame["type"] == "DELETED").await;
    world.create(definitions, definition).await.expect("valid");
    assert!(names(&world.list("stable.io@v1/shirts", "").await.expect("lists")).is_empty());
}

#[tokio::test]
async fn the_finalize_that_ends_a_namespace_shows_it_without_finalizers() {
    let world = World::new().await;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "leaving" } });
    world.create("@v1/namespaces", namespace).await.expect("creates");
    let mut leaving = world.delete("@v1/namespaces/leaving").await.expect("begins");
    leaving["spec"] = json!({ "finalizers": [] });
    let ended = world.update("@v1/namespaces/leaving/finalize", leaving.clone()).await.expect("ends");
    leaving["spec"] = json!({});
    assert_eq!(ended, leaving);
    assert_eq!(world.get("@v1/namespaces/leaving").await.expect_err("gone").reason, Reason::NotFound);
}

#[tokio::test]
async fn a_missing_namespace_is_not_found_and_a_terminating_one_is_forbidden() {
    let world = World::new().await;
    let refused =
        world.create("@v1/configmaps/nowhere", configmap("a", json!({}))).await.expect_err("no namespace");
    assert_eq!(
        (refused.reason, refused.message.as_str()),
        (Reason::NotFound, "namespaces \"nowhere\" not found")
    );
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "leaving" } });
    world.create("@v1/namespaces", namespace).await.expect("creates");
    world.create("@v1/configmaps/leaving", configmap("a", json!({}))).await.expect("creates");
    let leaving = world.delete("@v1/namespaces/leaving").await.expect("begins");
    assert_eq!(leaving["status"]["phase"], "Terminating");
    let refused =
        world.create("@v1/configmaps/leaving", configmap("b", json!({}))).await.expect_err("terminating");
    assert_eq!(refused.reason, Reason::Forbidden);
    assert_eq!(refused.causes[0].reason.as_str(), "NamespaceTerminating");
}

#[tokio::test]
async fn unknown_fields_are_warned_of_or_refused() {
    let world = World::new().await;
    let mut body = configmap("a", json!({}));
    body["bogus"] = json!(1);
    let options = CreateOptions { field_validation: FieldValidation::Strict, ..CreateOptions::default() };
    let refused =
        world.registry.create(&world.target(CM), &text(body.clone()), &options).await.expect_err("strict");
    assert_eq!(
        refused.message,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"bogus\""
    );
    let answer = world
        .registry
        .create(&world.target(CM), &text(body), &CreateOptions::default())
        .await
        .expect("warns");
    assert_eq!(answer.warnings, ["unknown field \"bogus\""]);
    assert!(object(answer).get("bogus").is_none());
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let world = World::new().await;
    let options = CreateOptions { dry_run: true, ..CreateOptions::default() };
    world
        .registry
        .create(&world.target(CM), &text(configmap("a", json!({}))), &options)
        .await
        .expect("would create");
    assert_eq!(world.get("@v1/configmaps/default/a").await.expect_err("was not").reason, Reason::NotFound);
}

#[tokio::test]
async fn a_new_object_has_a_version_in_dry_runs_only() {
    let world = World::new().await;
    let create = async |name: &str, version: &str, dry_run: bool| {
        let mut new = configmap(name, json!({}));
        new["metadata"]["resourceVersion"] = json!(version);
        let options = CreateOptions { dry_run, ..CreateOptions::default() };
        let answer = world.registry.create(&world.target(CM), &text(new), &options).await;
        answer.map(|answer| object(answer)["metadata"]["resourceVersion"].clone())
    };
    assert_eq!(create("a", "5", true).await, Ok(json!("5")));
    let refused = create("a", "5", false).await.expect_err("has a version");
    assert_eq!(refused.message, "resourceVersion should not be set on objects to be created");
    // What is wrong with the object is said before that.
    assert_eq!(create("A", "5", false).await.expect_err("invalid").reason, Reason::Invalid);
    for (name, none) in [("zero", "0"), ("word", "x"), ("sign", "+5")] {
        assert_ne!(create(name, none, false).await, Ok(json!(none)), "{name} is stored at a version of ours");
    }
}

#[tokio::test]
async fn status_and_spec_are_written_apart() {
    let world = World::new().await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": 2, "selector": { "matchLabels": { "app": "web" } }, "template": {
            "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } } },
        "status": { "replicas": 9 },
    });
    let created = world.create("apps@v1/deployments/default", deployment).await.expect("creates");
    assert!(created["status"].get("replicas").is_none(), "a new object has no status of the client's");
    assert_eq!(created["metadata"]["generation"], 1);
    let patch = json!({ "spec": { "replicas": 7 }, "status": { "replicas": 3 } });
    let status = world
        .patch("apps@v1/deployments/default/web/status", PatchKind::Merge, patch.clone())
        .await
        .expect("patches");
    assert_eq!((&status["spec"]["replicas"], &status["status"]["replicas"]), (&json!(2), &json!(3)));
    assert_eq!(status["metadata"]["generation"], 1);
    let spec = world
        .patch("apps@v1/deployments/default/web", PatchKind::StrategicMerge, patch)
        .await
        .expect("patches");
    assert_eq!((&spec["spec"]["replicas"], &spec["status"]["replicas"]), (&json!(7), &json!(3)));
    assert_eq!(spec["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_watch_resumes_across_a_restart_without_a_gap() {
    let (clock, _hand) = Clock::manual(1_700_000_000_000);
    let engine =
        Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
    let before = World::on(engine, clock.clone()).await;
    let first = before.create(CM, configmap("a", json!({}))).await.expect("creates");
    before.create(CM, configmap("b", json!({}))).await.expect("creates");
    before.delete("@v1/configmaps/default/a").await.expect("deletes");
    assert!(before.tasks.stop(Duration::from_secs(60)).await);
    // The cache is gone; the store is what a restart finds.
    let after = World::on(before.engine.clone(), clock).await;
    let query = format!("watch=1&resourceVersion={}", rv(&first));
    let frames = after.watch(CM, &query, |frame| frame["type"] == "DELETED").await;
    let shown: Vec<&str> = frames.iter().map(|frame| frame["type"].as_str().unwrap_or("")).collect();
    assert_eq!(shown, ["ADDED", "DELETED"]);
}

#[tokio::test]
async fn an_expired_watch_is_told_inside_the_stream() {
    let world = World::new().await;
    let list = world.list(CM, "").await.expect("lists");
    assert!(rv(&list).parse::<u64>().expect("a number") > 1);
    let refused = world.list(CM, "resourceVersion=999999").await;
    assert_eq!(refused.expect_err("too large").causes[0].reason.as_str(), "ResourceVersionTooLarge");
}
