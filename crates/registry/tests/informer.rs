//! What a controller of the same process sees of a resource.

use std::collections::BTreeMap;

use forebay_api::Body;
use forebay_apimachinery::Lease;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions};
use forebay_apimachinery::selector::FieldSelector;
use forebay_catalog::Target;
use forebay_embedded::{Engine, Options};
use forebay_registry::{Config, Informer, Notice, Registry};
use forebay_rt::{Clock, Duration, Random, Tasks};
use serde_json::{Value, json};

async fn registry() -> Registry {
    let (clock, _hand) = Clock::manual(1_700_000_000_000);
    let engine =
        Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
    let registry = Registry::new(Config::default(), engine, clock, Random::seeded(7), Tasks::new());
    registry.start().await.expect("starts");
    registry
}

fn target(
    registry: &Registry,
    group: &str,
    resource: &str,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Target {
    let served = registry.catalog().resource(group, "v1", resource).expect("served").clone();
    Target {
        served,
        namespace: namespace.map(String::from),
        name: name.map(String::from),
        subresource: None,
        caller: None,
        lease: Lease::of_server(),
        context: forebay_catalog::RequestContext::default(),
    }
}

async fn create(registry: &Registry, target: &Target, body: Value) {
    registry.create(target, &Body::Value(body), &CreateOptions::default()).await.expect("creates");
}

async fn delete(registry: &Registry, target: &Target) {
    registry.delete(target, &DeleteOptions::default()).await.expect("deletes");
}

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

/// The next notices, in short.
async fn next(informer: &mut Informer, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < count {
        match informer.try_next() {
            Some(Notice::Put(object)) => seen.push(format!("put {}", object.name())),
            Some(Notice::Deleted(object)) => seen.push(format!("deleted {}", object.name())),
            Some(Notice::Synced) => seen.push("synced".into()),
            Some(Notice::Ended) => seen.push("ended".into()),
            None => informer.ready().await,
        }
    }
    assert!(informer.try_next().is_none(), "nothing more after {seen:?}");
    seen
}

#[tokio::test]
async fn what_is_there_comes_first_and_then_what_happens() {
    let registry = registry().await;
    let all = target(&registry, "", "configmaps", None, None);
    let here = target(&registry, "", "configmaps", Some("default"), None);
    create(&registry, &here, map("a")).await;
    // A list begins with what the cache shows; a consistent read sees to it that it shows this.
    assert_eq!(registry.objects(&here).await.expect("objects").iter().count(), 1);
    let mut every = registry.informer(&all, &ListOptions::default()).expect("listens");
    let field_selector = FieldSelector::parse("metadata.name=b").expect("a selector");
    let only_b = ListOptions { field_selector, ..ListOptions::default() };
    let mut only_b = registry.informer(&all, &only_b).expect("listens");
    assert_eq!(next(&mut every, 2).await, ["put a", "synced"]);
    assert_eq!(next(&mut only_b, 1).await, ["synced"]);
    create(&registry, &here, map("b")).await;
    delete(&registry, &target(&registry, "", "configmaps", Some("default"), Some("a"))).await;
    assert_eq!(next(&mut every, 2).await, ["put b", "deleted a"]);
    assert_eq!(next(&mut only_b, 1).await, ["put b"]);
    let objects = registry.objects(&here).await.expect("objects");
    assert_eq!(objects.iter().map(|object| object.name().to_string()).collect::<Vec<_>>(), ["b"]);
}

#[tokio::test]
async fn everything_acknowledged_can_be_read_once_the_revision_is_reached() {
    let registry = registry().await;
    let here = target(&registry, "", "configmaps", Some("default"), None);
    let mut informer = registry.informer(&here, &ListOptions::default()).expect("listens");
    assert_eq!(next(&mut informer, 1).await, ["synced"]);
    for number in 0..200 {
        create(&registry, &here, map(&format!("m{number}"))).await;
    }
    let current = registry.current_revision().await.expect("a revision");
    let deadline = registry.clock().now() + Duration::from_secs(30);
    assert!(informer.reaches(current, deadline).await);
    let mut seen = BTreeMap::new();
    while let Some(Notice::Put(object)) = informer.try_next() {
        seen.insert(object.name().to_string(), object);
    }
    assert_eq!(seen.len(), 200);
}

#[tokio::test]
async fn the_end_of_a_definition_ends_its_informers_after_the_last_object() {
    let registry = registry().await;
    let crds = target(&registry, "apiextensions.k8s.io", "customresourcedefinitions", None, None);
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.io" },
        "spec": {
            "group": "example.io", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    let mut changes = registry.catalog_changes();
    create(&registry, &crds, crd).await;
    while registry.catalog().resource("example.io", "v1", "widgets").is_none() {
        changes.changed().await;
    }
    let widgets = target(&registry, "example.io", "widgets", Some("default"), None);
    let mut informer = registry.informer(&widgets, &ListOptions::default()).expect("listens");
    let widget = json!({ "apiVersion": "example.io/v1", "kind": "Widget", "metadata": { "name": "w" } });
    create(&registry, &widgets, widget).await;
    let mut seen = next(&mut informer, 2).await;
    seen.sort();
    assert_eq!(seen, ["put w", "synced"]);
    delete(&registry, &Target { name: Some("widgets.example.io".into()), ..crds }).await;
    assert_eq!(next(&mut informer, 2).await, ["deleted w", "ended"]);
}
