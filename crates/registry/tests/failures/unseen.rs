//! Plugins whose caches do not know an object that is there: they lag, or are filled anew. What nobody knows
//! of an object is no reason to let a write pass.

use std::sync::Arc;

use forebay_api::{Answer, PatchKind};
use forebay_apimachinery::options::{DeleteOptions, PatchOptions};
use forebay_apimachinery::{Caller, Reason, Status};
use forebay_registry::{Admission, Config};
use serde_json::{Value, json};

use crate::store::Way;
use crate::world::{MINUTE, PODS, World};

const SLICES: &str = "/resource.k8s.io/v1/resourceslices";
const RANGES: &str = "/v1/limitranges/default";
const CLASSES: &str = "/scheduling.k8s.io/v1/priorityclasses";
const NODES: &str = "/v1/nodes";
const NAMESPACES: &str = "/v1/namespaces";
const CLAIMS: &str = "/resource.k8s.io/v1/resourceclaims/default";

async fn world(without: &[&str]) -> World {
    let without = without.iter().copied().chain(["ServiceAccount"]);
    let admission = Admission::without(without).with(["NodeRestriction"]);
    World::configured(Config { admission, ..Config::default() }).await
}

/// The cache of what is below `path`, of which one is written again and again, loses its history and cannot
/// read the state again.
async fn empty_cache(world: &World, path: &str, name: &str) {
    for round in 0..8 {
        world.pass(MINUTE).await;
        let changed = json!({ "metadata": { "annotations": { "round": round.to_string() } } });
        world.merge(&format!("{path}/{name}"), changed).await.expect("is written");
    }
    world.set(|faults| faults.range = Way::Silent);
    world.store.carry_on_forgetful();
    world.settle().await;
    let store = world.target(path).served.store.clone().expect("stored");
    assert!(store.cacher.snapshot().is_err(), "the cache of {path} is being filled");
}

async fn delete_as_node(world: &World, node: &str, path: &str) -> Result<Answer, Status> {
    let mut target = world.target(path);
    let caller = Caller {
        name: format!("system:node:{node}"),
        groups: vec!["system:nodes".into()],
        ..Caller::default()
    };
    target.caller = Some(Arc::new(caller.authenticated()));
    let at_once = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    world.registry.delete(&target, &at_once).await
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    for (member, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][member] = value.clone();
    }
    pod
}

async fn is_there(world: &World, path: &str) -> bool {
    match world.get(path, "").await {
        Ok(found) => found["metadata"]["deletionTimestamp"].is_null(),
        Err(status) if status.reason == Reason::NotFound => false,
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_deletes_no_pod_that_the_cache_has_not_seen_yet() {
    let world = world(&[]).await;
    let missing = delete_as_node(&world, "a", &format!("{PODS}/p")).await.expect_err("there is none");
    assert_eq!((missing.reason, &*missing.message), (Reason::NotFound, "pods \"p\" not found"));

    world.set(|faults| faults.feeds_stalled = true);
    world.create(PODS, pod("p", json!({ "nodeName": "b" }))).await.expect("created");
    let refused =
        delete_as_node(&world, "a", &format!("{PODS}/p")).await.expect_err("nobody knows whose it is");
    assert_eq!(refused.reason, Reason::TooManyRequests);
    assert!(is_there(&world, &format!("{PODS}/p")).await);

    world.set(|faults| faults.feeds_stalled = false);
    world.pass(MINUTE).await;
    let refused = delete_as_node(&world, "a", &format!("{PODS}/p")).await.expect_err("it is of b");
    assert_eq!(
        refused.message,
        "pods \"p\" is forbidden: node \"a\" can only delete pods with spec.nodeName set to itself"
    );
    delete_as_node(&world, "b", &format!("{PODS}/p")).await.expect("its own");
    assert!(!is_there(&world, &format!("{PODS}/p")).await);
}

#[tokio::test(start_paused = true)]
async fn a_node_deletes_no_pod_while_the_cache_is_filled_anew() {
    let world = world(&[]).await;
    world.create(PODS, pod("p", json!({ "nodeName": "b" }))).await.expect("created");
    world.settle().await;
    world.set(|faults| faults.feeds_stalled = true);
    empty_cache(&world, PODS, "p").await;
    for node in ["a", "b"] {
        delete_as_node(&world, node, &format!("{PODS}/p")).await.expect_err("nobody knows whose it is");
    }
    world.set(|faults| faults.range = Way::Open);
    world.pass(MINUTE).await;
    assert!(is_there(&world, &format!("{PODS}/p")).await);
    let refused = delete_as_node(&world, "a", &format!("{PODS}/p")).await.expect_err("it is of b");
    assert_eq!(refused.reason, Reason::Forbidden);
    delete_as_node(&world, "b", &format!("{PODS}/p")).await.expect("its own");
}

/// Also one of the same name that was another node's a moment ago.
#[tokio::test(start_paused = true)]
async fn a_node_deletes_no_slice_that_the_cache_has_not_seen_yet() {
    let world = world(&[]).await;
    let slice = |node: &str| {
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": { "name": "s" },
            "spec": {
                "driver": "d.example.com", "nodeName": node,
                "pool": { "name": "p", "generation": 1, "resourceSliceCount": 1 },
            },
        })
    };
    let path = format!("{SLICES}/s");
    world.create(SLICES, slice("a")).await.expect("created");
    world.settle().await;
    world.set(|faults| faults.feeds_stalled = true);
    world.delete(SLICES, "s").await;
    let missing = delete_as_node(&world, "a", &path).await.expect_err("there is none");
    assert_ne!(missing.reason, Reason::Forbidden);
    world.create(SLICES, slice("b")).await.expect("created");
    delete_as_node(&world, "a", &path).await.expect_err("it is of b");
    assert!(is_there(&world, &path).await);
    delete_as_node(&world, "b", &path).await.expect("its own, however old the cache is");
    assert!(!is_there(&world, &path).await);
    world.create(SLICES, slice("b")).await.expect("created");

    world.set(|faults| faults.feeds_stalled = false);
    world.pass(MINUTE).await;
    let refused = delete_as_node(&world, "a", &path).await.expect_err("it is of b");
    assert_eq!(
        refused.message,
        "resourceslices.resource.k8s.io \"s\" is forbidden: can only delete ResourceSlice with the same NodeName \
         as the requesting node"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_let_pass_or_left_without_a_default_while_limits_and_classes_are_not_known() {
    let world = world(&["ResourceQuota"]).await;
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "r" },
        "spec": { "limits": [{ "type": "Pod", "max": { "cpu": "1" } }] },
    });
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "c" },
        "value": 7, "globalDefault": true,
    });
    world.create(RANGES, range).await.expect("created");
    world.create(CLASSES, class).await.expect("created");
    world.settle().await;
    let of_size = |name: &str, cpu: &str| {
        let resources = json!({ "requests": { "cpu": cpu }, "limits": { "cpu": cpu } });
        pod(name, json!({ "containers": [{ "name": "c", "image": "i", "resources": resources }] }))
    };
    let too_large = world.create(PODS, of_size("large", "2")).await.expect_err("more than it may be");
    assert_eq!(too_large.reason, Reason::Forbidden);

    world.set(|faults| faults.feeds_stalled = true);
    empty_cache(&world, RANGES, "r").await;
    let unknown = world.create(PODS, of_size("large", "2")).await.expect_err("nobody knows what it may be");
    assert_eq!(unknown.reason, Reason::TooManyRequests, "{unknown:?}");
    world.set(|faults| faults.range = Way::Open);
    world.pass(MINUTE).await;

    world.set(|faults| faults.feeds_stalled = true);
    empty_cache(&world, CLASSES, "c").await;
    let unknown = world.create(PODS, of_size("small", "1")).await.expect_err("nobody knows its class");
    assert_eq!(unknown.reason, Reason::TooManyRequests, "{unknown:?}");
    let second = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "d" },
        "value": 8, "globalDefault": true,
    });
    let unknown = world.create(CLASSES, second).await.expect_err("nobody knows whether there is another");
    assert_eq!(unknown.reason, Reason::TooManyRequests, "{unknown:?}");
    world.set(|faults| faults.range = Way::Open);
    world.pass(MINUTE).await;
    let (made, _) = world.create(PODS, of_size("small", "1")).await.expect("known by now");
    assert_eq!(made["spec"]["priority"], 7);
}

/// Another server of the same store may have made it; whoever asks often waits once for a while.
#[tokio::test(start_paused = true)]
async fn the_first_limits_of_a_namespace_are_waited_for() {
    let world = world(&["ResourceQuota"]).await;
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "r" },
        "spec": { "limits": [{ "type": "Container", "max": { "cpu": "1" } }] },
    });
    world.set(|faults| faults.feeds_stalled = true);
    world.create(RANGES, range).await.expect("created");
    let container = json!({ "name": "c", "image": "i", "resources": { "limits": { "cpu": "2" } } });
    let large = || pod("p", json!({ "containers": [container] }));
    let seen = async {
        world.settle().await;
        world.set(|faults| faults.feeds_stalled = false);
    };
    let (made, ()) = tokio::join!(world.create(PODS, large()), seen);
    let refused = made.expect_err("more than it may be");
    assert_eq!(
        refused.message,
        "pods \"p\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"
    );
    world.delete(RANGES, "r").await;
    world.pass(MINUTE).await;
    world.create(PODS, large()).await.expect("there are no limits");
    world.set(|faults| faults.feeds_stalled = true);
    world.create(PODS, pod("q", json!({}))).await.expect("there were none a moment ago");
}

/// What stands behind an extended resource is counted by its class.
#[tokio::test(start_paused = true)]
async fn no_claim_for_devices_is_counted_while_their_classes_are_not_known() {
    const DEVICES: &str = "/resource.k8s.io/v1/deviceclasses";
    let world = world(&[]).await;
    let class = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "d" },
        "spec": { "extendedResourceName": "example.com/gpu" },
    });
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "q" },
        "spec": { "hard": { "requests.example.com/gpu": "0" } },
    });
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": { "name": "c" },
        "spec": { "devices": { "requests": [{ "name": "r", "exactly": { "deviceClassName": "d" } }] } },
    });
    world.create(DEVICES, class).await.expect("created");
    world.create("/v1/resourcequotas/default", quota).await.expect("created");
    world.settle().await;
    let counted = json!({ "status": {
        "hard": { "requests.example.com/gpu": "0" }, "used": { "requests.example.com/gpu": "0" },
    } });
    let mut status = world.target("/v1/resourcequotas/default/q");
    status.subresource = Some("status".into());
    let counted = counted.to_string();
    let written =
        world.registry.patch(&status, PatchKind::Merge, counted.as_bytes(), &PatchOptions::default()).await;
    written.expect("counted");
    world.settle().await;
    let refused = world.create(CLAIMS, claim.clone()).await.expect_err("more than there may be");
    assert_eq!(refused.reason, Reason::Forbidden, "{refused:?}");
    world.set(|faults| faults.feeds_stalled = true);
    empty_cache(&world, DEVICES, "d").await;
    let unknown = world.create(CLAIMS, claim).await.expect_err("nobody knows what it is counted by");
    assert_eq!(unknown.reason, Reason::TooManyRequests, "{unknown:?}");
}

/// A refusal of what the cache has not seen is judged again, in validation as well.
#[tokio::test(start_paused = true)]
async fn a_refusal_by_an_old_class_is_judged_again_when_the_cache_has_what_was_acknowledged() {
    let world = world(&[]).await;
    let class = |name: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name },
            "value": 7, "globalDefault": true,
        })
    };
    world.create(CLASSES, class("c")).await.expect("created");
    world.settle().await;
    world.set(|faults| faults.feeds_stalled = true);
    world.delete(CLASSES, "c").await;
    let seen = async {
        world.settle().await;
        world.set(|faults| faults.feeds_stalled = false);
    };
    let (made, ()) = tokio::join!(world.create(CLASSES, class("d")), seen);
    made.expect("the other one is gone");
}

/// What is not among the nodes is looked for only while these are not known: a pod may name a node that is
/// never there, and is to cost no read of the store.
#[tokio::test(start_paused = true)]
async fn a_pod_has_the_zone_of_its_node_while_the_cache_of_nodes_is_filled_anew() {
    let world = world(&[]).await;
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "n", "labels": { "topology.kubernetes.io/zone": "z" } },
    });
    world.create(NODES, node).await.expect("created");
    let (made, _) = world.create(PODS, pod("q", json!({ "nodeName": "none" }))).await.expect("created");
    assert!(made["metadata"]["labels"].is_null());
    world.settle().await;
    world.set(|faults| faults.feeds_stalled = true);
    empty_cache(&world, NODES, "n").await;
    let (made, _) = world.create(PODS, pod("p", json!({ "nodeName": "n" }))).await.expect("created");
    assert_eq!(made["metadata"]["labels"], json!({ "topology.kubernetes.io/zone": "z" }));
}

/// Whoever takes the label away counts on it.
#[tokio::test(start_paused = true)]
async fn admin_access_to_devices_goes_by_the_label_that_the_namespace_has_now() {
    let world = world(&[]).await;
    let claim = |name: &str| {
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": { "name": name },
            "spec": { "devices": { "requests": [
                { "name": "r", "exactly": { "deviceClassName": "d", "adminAccess": true } },
            ] } },
        })
    };
    let label =
        |value: Value| json!({ "metadata": { "labels": { "resource.kubernetes.io/admin-access": value } } });
    let namespace = format!("{NAMESPACES}/default");
    world.merge(&namespace, label("true".into())).await.expect("labelled");
    world.settle().await;
    world.create(CLAIMS, claim("a")).await.expect("is labelled");
    world.set(|faults| faults.feeds_stalled = true);
    world.merge(&namespace, label(Value::Null)).await.expect("no more");
    let refused = world.create(CLAIMS, claim("b")).await.expect_err("is not labelled any more");
    assert_eq!(refused.reason, Reason::Invalid);
    world.merge(&namespace, label("true".into())).await.expect("labelled");
    world.create(CLAIMS, claim("b")).await.expect("is labelled again, though the cache may not know");
}
