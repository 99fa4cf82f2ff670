//! What each namespace has: the default ServiceAccount and the root CA.

mod world;

use std::sync::Arc;
use std::time::Duration;

use forebay_controllers::{ControllerConfig, RootCa, Selection};
use forebay_rt::{Random, Tasks};
use serde_json::{Value, json};
use world::{CA, World, held, map, namespace};

const BOTH: &str = "serviceaccount-controller,root-ca-certificate-publisher-controller";

#[tokio::test]
async fn each_namespace_has_its_account_and_its_authority() {
    let world = World::with(BOTH).await;
    world.create("@v1/namespaces", namespace("x")).await;
    for name in ["default", "kube-system", "kube-public", "kube-node-lease", "x"] {
        world.until_there(&format!("@v1/serviceaccounts/{name}/default")).await;
        world.until_there(&format!("@v1/configmaps/{name}/kube-root-ca.crt")).await;
    }
    let found = world.get("@v1/configmaps/x/kube-root-ca.crt").await;
    assert_eq!(found["data"], json!({ "ca.crt": CA }));
    let described =
        found["metadata"]["annotations"]["kubernetes.io/description"].as_str().expect("described");
    assert!(described.starts_with("Contains a CA bundle that can be used to verify the kube-apiserver"));
}

#[tokio::test]
async fn what_is_deleted_comes_back_and_what_is_changed_is_set_right() {
    let world = World::with(BOTH).await;
    let (account, authority) =
        ("@v1/serviceaccounts/default/default", "@v1/configmaps/default/kube-root-ca.crt");
    for path in [account, authority] {
        world.until_there(path).await;
        let old = world.get(path).await["metadata"]["uid"].clone();
        world.delete(path, None).await;
        world.until(path, |found| found.is_some_and(|found| found["metadata"]["uid"] != old)).await;
    }
    for change in [
        json!({ "data": { "ca.crt": "other" } }),
        json!({ "data": { "more": "x" } }),
        json!({ "data": null }),
        json!({ "metadata": { "annotations": null } }),
    ] {
        world.merge(authority, change.clone()).await;
        world
            .until(authority, |found| {
                let found = found.expect("there");
                found["data"] == json!({ "ca.crt": CA })
                    && found["metadata"]["annotations"]["kubernetes.io/description"].is_string()
            })
            .await;
    }
    // Others may say something else of it, and more.
    let own = json!({ "metadata": { "annotations": { "kubernetes.io/description": "own", "a": "b" } } });
    world.merge(authority, own).await;
    world.create("@v1/configmaps/default", map("other")).await;
    world.delete(account, None).await;
    world.until_there(account).await;
    let annotations = world.get(authority).await["metadata"]["annotations"].clone();
    assert_eq!(annotations, json!({ "kubernetes.io/description": "own", "a": "b" }));
}

#[tokio::test]
async fn a_namespace_on_its_way_out_gets_nothing_new() {
    let world = World::with(&format!("{BOTH},namespace-controller")).await;
    world.create("@v1/namespaces", held(namespace("x"), "example.io/hold")).await;
    world.until_there("@v1/serviceaccounts/x/default").await;
    world.until_there("@v1/configmaps/x/kube-root-ca.crt").await;
    world.delete("@v1/namespaces/x", None).await;
    world.until_gone("@v1/serviceaccounts/x/default").await;
    world.until_gone("@v1/configmaps/x/kube-root-ca.crt").await;
    world.create("@v1/namespaces", namespace("y")).await;
    world.until_there("@v1/serviceaccounts/y/default").await;
    assert!(world.find("@v1/serviceaccounts/x/default").await.is_none());
    assert!(world.find("@v1/configmaps/x/kube-root-ca.crt").await.is_none());
}

#[tokio::test]
async fn what_is_missing_at_a_start_is_made() {
    let world = World::with("").await;
    world.create("@v1/namespaces", namespace("x")).await;
    assert!(world.find("@v1/serviceaccounts/x/default").await.is_none());
    let world = world.restart(BOTH).await;
    world.until_there("@v1/serviceaccounts/x/default").await;
    world.until_there("@v1/configmaps/x/kube-root-ca.crt").await;
}

/// Servers that share a store, each with an authority of its own.
#[tokio::test]
async fn authorities_of_several_servers_are_published_together_and_then_left_alone() {
    let world = World::with("serviceaccount-controller").await;
    let tasks = Tasks::new();
    for own in ["A", "B", "C"] {
        let root_ca: RootCa = Arc::new(move |published| match published.contains(own) {
            true => published.to_string(),
            false => format!("{published}{own}"),
        });
        let selection = Selection::parse(["root-ca-certificate-publisher-controller"]).expect("known");
        let authorizer = world.authorizer.clone();
        let config = ControllerConfig {
            selection,
            root_ca,
            authorizer,
            signing: None,
            elsewhere: None,
            objects_elsewhere: None,
        };
        forebay_controllers::start(&config, &world.registry, Random::system(), &tasks);
    }
    let path = |namespace: &str| format!("@v1/configmaps/{namespace}/kube-root-ca.crt");
    let has_all = |found: Option<&Value>| {
        let text = found.and_then(|found| found["data"]["ca.crt"].as_str()).unwrap_or_default();
        text.len() == 3 && ["A", "B", "C"].iter().all(|own| text.contains(own))
    };
    let namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];
    for namespace in namespaces {
        world.until(&path(namespace), has_all).await;
    }
    let mut before = Vec::new();
    for namespace in namespaces {
        before.push(world.get(&path(namespace)).await);
    }
    world.create("@v1/namespaces", namespace("x")).await;
    world.until(&path("x"), has_all).await;
    // Whoever may write in a namespace does not say who is trusted there.
    world.merge(&path("x"), json!({ "data": { "ca.crt": "Z" } })).await;
    world.until(&path("x"), has_all).await;
    for (namespace, before) in namespaces.iter().zip(before) {
        assert_eq!(world.get(&path(namespace)).await, before, "nobody writes for ever");
    }
    assert!(tasks.stop(Duration::from_secs(60)).await);
}
