//! CRDs whose cache was lost, or whose store was put back to a backup: what is served then.

use std::sync::atomic::Ordering;

use forebay_api::{Body, PatchKind};
use forebay_apimachinery::options::{CreateOptions, PatchOptions};
use serde_json::{Value, json};

use crate::store::Way;
use crate::world::{CM, MINUTE, World};

const CRDS: &str = "/apiextensions.k8s.io/v1/customresourcedefinitions";
const SHIRTS: &str = "/stable.io/v1/shirts/default";

/// These versions of a CRD, all of them served. The first is stored.
fn versions(names: &[&str]) -> Value {
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": *name == names[0],
            "schema": { "openAPIV3Schema": { "type": "object" } },
        })
    };
    names.iter().map(version).collect()
}

async fn create(world: &World, path: &str, object: Value) {
    let target = world.target(path);
    let made = world.registry.create(&target, &Body::Value(object), &CreateOptions::default()).await;
    made.map(drop).expect("is taken");
}

/// Creates the CRD `plural.stable.io`, served as v1.
async fn define(world: &World, plural: &str) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.stable.io") },
        "spec": {
            "group": "stable.io", "scope": "Namespaced", "versions": versions(&["v1"]),
            "names": { "plural": plural, "singular": plural.trim_end_matches('s'), "kind": format!("Kind{plural}") },
        },
    });
    create(world, CRDS, crd).await;
}

/// Changes the versions that shirts are served in.
async fn serve_shirts(world: &World, names: &[&str]) {
    let target = world.target(&format!("{CRDS}/shirts.stable.io"));
    let patch = json!({ "spec": { "versions": versions(names) } }).to_string();
    let options = PatchOptions::default();
    let made = world.registry.patch(&target, PatchKind::Merge, patch.as_bytes(), &options).await;
    made.map(drop).expect("is taken");
}

async fn create_shirt(world: &World, name: &str, finalizers: Value) {
    let metadata = json!({ "name": name, "finalizers": finalizers });
    let shirt = json!({ "apiVersion": "stable.io/v1", "kind": "Kindshirts", "metadata": metadata });
    create(world, SHIRTS, shirt).await;
}

/// What is served of `stable.io`.
fn served(world: &World) -> Vec<String> {
    let catalog = world.registry.catalog();
    let ours = catalog.iter().filter(|served| served.group() == "stable.io");
    ours.map(|served| format!("{}/{}", served.resource(), served.gvr.version)).collect()
}

/// Somebody reads these from a store that was put back, by which their caches notice.
async fn notice(world: &World, paths: &[&str]) {
    for path in paths {
        assert!(world.list(path, "").await.is_err(), "{path} cannot be proved to be current");
    }
    world.pass(MINUTE).await;
}

fn initializations(world: &World) -> u64 {
    let store = world.target(CRDS).served.store.clone().expect("stored");
    store.cacher.counters().initializations.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn crds_are_followed_again_though_nothing_proves_for_long_that_they_are_current() {
    let world = World::new().await;
    define(&world, "shirts").await;
    let filled = initializations(&world);
    world.set(|faults| faults.feeds_stalled = true);
    // Of that the cache is told the last alone.
    define(&world, "belts").await;
    define(&world, "hats").await;
    for _ in 0..8 {
        world.pass(MINUTE).await;
        world.put(CM, "busy", "").await;
    }
    assert_eq!(served(&world), ["shirts/v1"]);
    // The state is to be read again, and nobody says what is current.
    world.set(|faults| faults.barrier = Way::Silent);
    world.store.carry_on_forgetful();
    world.pass(MINUTE).await;
    world.set(|faults| faults.barrier = Way::Open);
    world.pass(MINUTE).await;
    assert!(initializations(&world) > filled, "the cache was lost");
    assert_eq!(served(&world), ["belts/v1", "hats/v1", "shirts/v1"]);
    define(&world, "caps").await;
    let all = ["belts/v1", "caps/v1", "hats/v1", "shirts/v1"];
    assert_eq!(served(&world), all, "when its writer is answered");
}

#[tokio::test(start_paused = true)]
async fn crds_of_a_store_that_was_put_back_are_those_that_it_has() {
    let mut world = World::new().await;
    define(&world, "shirts").await;
    let backup = world.backup();
    define(&world, "hats").await;
    for version in ["v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9"] {
        serve_shirts(&world, &["v1", version]).await;
    }
    assert_eq!(served(&world), ["hats/v1", "shirts/v1", "shirts/v9"]);
    let lost = world.registry.catalog().revision;
    world.put_back(backup);
    notice(&world, &[CRDS]).await;
    assert_eq!(served(&world), ["shirts/v1"]);
    // At revisions below those that were known.
    serve_shirts(&world, &["v1", "v2"]).await;
    assert_eq!(served(&world), ["shirts/v1", "shirts/v2"], "when its writer is answered");
    define(&world, "caps").await;
    assert_eq!(served(&world), ["caps/v1", "shirts/v1", "shirts/v2"], "when its writer is answered");
    assert!(world.registry.catalog().revision < lost);
}

/// It was deleted by mistake, which is what the backup is for.
#[tokio::test(start_paused = true)]
async fn a_crd_that_a_backup_brings_back_keeps_its_objects() {
    let mut world = World::new().await;
    define(&world, "shirts").await;
    create_shirt(&world, "free", json!([])).await;
    create_shirt(&world, "held", json!(["example.com/hold"])).await;
    let backup = world.backup();
    world.delete(CRDS, "shirts.stable.io").await;
    world.pass(MINUTE).await;
    assert_eq!(world.names(SHIRTS, "").await.0, "held");
    world.put_back(backup);
    notice(&world, &[CRDS, SHIRTS]).await;
    assert_eq!(world.names(SHIRTS, "").await.0, "free held");
    let crd = world.get(&format!("{CRDS}/shirts.stable.io"), "").await.expect("is there");
    assert!(crd["metadata"]["deletionTimestamp"].is_null());
    // Its next end is one of its own.
    world.delete(CRDS, "shirts.stable.io").await;
    world.pass(MINUTE).await;
    assert_eq!(world.names(SHIRTS, "").await.0, "held");
}
