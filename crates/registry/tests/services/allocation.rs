//! What Services are given, and what refused and dry writes leave.

use std::collections::BTreeMap;

use forebay_api::{Body, PatchKind};
use forebay_apimachinery::Reason;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, PatchOptions};
use serde_json::{Value, json};

use crate::world::{SERVICES, World, create_at_once, object, service, text};

#[tokio::test]
async fn a_dry_run_takes_nothing_and_shows_what_upstream_shows() {
    let world = World::new("10.0.0.0/24", "30000-32767").await;
    let dry = CreateOptions { dry_run: true, ..CreateOptions::default() };
    let create = async |spec: Value| {
        let body = Body::Value(service("a", spec));
        world.registry.create(&world.target(SERVICES), &body, &dry).await.map(object)
    };
    let made =
        create(json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Local" })).await.expect("fine");
    assert_eq!(made["spec"]["clusterIPs"], json!(["10.0.0.0"]));
    assert_eq!(made["spec"]["ports"][0]["nodePort"], 32_769);
    assert_eq!(made["spec"]["healthCheckNodePort"], 32_770);
    let status = create(json!({ "clusterIP": "10.1.0.1" })).await.expect_err("out of range");
    let why = r#"Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.1.0.1"]: failed to allocate IP 10.1.0.1: the provided IP (10.1.0.1) is not in the valid range. The range of valid IPs is 10.0.0.0/24"#;
    assert_eq!(status.message, why);
    assert_eq!(world.claims().await, BTreeMap::new());
    world.service("a", json!({})).await.expect("creates");
    let options = PatchOptions { dry_run: true, ..PatchOptions::default() };
    let (target, before) = (world.target(&format!("{SERVICES}/a")), world.claims().await);
    for body in
        [r#"{"spec":{"type":"NodePort"}}"#, r#"{"spec":{"type":"ExternalName","externalName":"x.y"}}"#]
    {
        world.registry.patch(&target, PatchKind::Merge, body.as_bytes(), &options).await.expect("fine");
    }
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    world.registry.delete(&target, &options).await.expect("fine");
    assert_eq!(world.claims().await, before);
}

#[tokio::test]
async fn an_invalid_service_takes_nothing() {
    let world = World::new("10.0.0.0/24", "30000-30099").await;
    for (name, spec) in [
        ("A_", json!({})),
        ("a", json!({ "type": "NodePort", "ports": [] })),
        (
            "a",
            json!({ "type": "NodePort", "ports": [{ "port": 1, "nodePort": 30_001 }, { "port": 70_000 }] }),
        ),
        ("a", json!({ "clusterIP": "10.0.0.9", "sessionAffinity": "X" })),
    ] {
        let status = world.service(name, spec.clone()).await.expect_err("refused");
        assert_eq!(status.reason, Reason::Invalid, "{spec}");
    }
    assert_eq!(world.claims().await, BTreeMap::new());
    world.service("a", json!({ "clusterIP": "10.0.0.9" })).await.expect("it is free");
    let status = world.patch("a", json!({ "type": "NodePort", "ports": null })).await.expect_err("refused");
    assert_eq!(status.reason, Reason::Invalid);
    let status = world.service("A_", json!({ "clusterIP": "10.0.0.9" })).await.expect_err("refused");
    assert_eq!(status.causes[0].field, "spec.clusterIPs", "what is taken is told before what is wrong");
    world.is_consistent("only the address is taken").await;
}

#[tokio::test]
async fn addresses_come_from_every_service_cidr_that_is_ready_and_stays() {
    let world = World::new("10.0.0.0/29", "30000-30099").await;
    let (made, _) = create_at_once(std::slice::from_ref(&world), 7, &json!({})).await;
    assert_eq!(made.len(), 6);
    let more = json!({
        "kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "metadata": { "name": "more" },
        "spec": { "cidrs": ["10.9.0.0/29"] },
    });
    world.create("networking.k8s.io@v1/servicecidrs", more).await.expect("creates");
    let made = world.service("more", json!({})).await.expect("there is more");
    assert!(text(&made["spec"]["clusterIP"]).starts_with("10.9.0."), "{made}");
    world.delete("networking.k8s.io@v1/servicecidrs/more").await.expect("deletes");
    let status = world.service("none", json!({})).await.expect_err("full again");
    assert_eq!(status.reason, Reason::InternalError);
    // An address of a range that is gone can still be given back.
    world.delete(&format!("{SERVICES}/more")).await.expect("deletes");
    world.is_consistent("it is given back").await;
}

#[tokio::test]
async fn the_endpoints_of_a_service_go_with_it() {
    let world = World::new("10.0.0.0/24", "30000-30099").await;
    for name in ["a", "b"] {
        world.service(name, json!({})).await.expect("creates");
        let endpoints = json!({ "kind": "Endpoints", "apiVersion": "v1", "metadata": { "name": name } });
        world.create("@v1/endpoints/default", endpoints).await.expect("creates");
    }
    world.delete(&format!("{SERVICES}/a")).await.expect("deletes");
    let left = world.list("@v1/endpoints/default").await;
    let names: Vec<String> = left.iter().map(|found| text(&found["metadata"]["name"])).collect();
    assert_eq!(names, ["b"]);
}

#[tokio::test]
async fn a_service_that_is_held_keeps_what_it_has_until_it_is_gone() {
    let world = World::new("10.0.0.0/24", "30000-30099").await;
    let mut held = service("a", json!({ "type": "NodePort", "ports": [{ "port": 1, "nodePort": 30_009 }] }));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create(SERVICES, held).await.expect("creates");
    world.delete(&format!("{SERVICES}/a")).await.expect("begins to");
    let spec = json!({ "type": "NodePort", "ports": [{ "port": 1, "nodePort": 30_009 }] });
    let status = world.service("b", spec.clone()).await.expect_err("it is a's still");
    assert_eq!(status.causes[0].field, "spec.ports[0].nodePort");
    // Through the status, as upstream lets it.
    let target = world.target(&format!("{SERVICES}/a/status"));
    let body = br#"{"metadata":{"finalizers":null}}"#;
    let patched = world.registry.patch(&target, PatchKind::Merge, body, &PatchOptions::default()).await;
    patched.expect("ends it");
    assert_eq!(world.claims().await, BTreeMap::new());
    world.service("b", spec).await.expect("it is free");
}

#[tokio::test]
async fn a_put_with_what_a_service_was_made_of_changes_nothing() {
    let world = World::new("10.0.0.0/24,fd00::/120", "30000-30099").await;
    for spec in [
        json!({}),
        json!({ "type": "NodePort" }),
        json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Local" }),
        json!({ "ipFamilyPolicy": "RequireDualStack" }),
        json!({ "clusterIP": "None" }),
    ] {
        let made = world.service("a", spec.clone()).await.expect("creates");
        let path = format!("{SERVICES}/a");
        let again = world.update(&path, service("a", spec.clone())).await.expect("updates");
        assert_eq!(again, made, "{spec}");
        world.is_consistent("nothing was taken or given back").await;
        world.delete(&path).await.expect("deletes");
    }
    assert_eq!(world.claims().await, BTreeMap::new());
}

/// Upstream asks its strategy for objects whether a status may create, and takes nothing for what it makes.
#[tokio::test]
async fn the_status_of_a_service_that_is_not_there_makes_it_without_an_address() {
    let world = World::new("10.0.0.0/24", "30000-30099").await;
    let path = format!("{SERVICES}/a/status");
    let bare = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" } });
    let refused = world.update(&path, bare).await.expect_err("has no ports");
    assert_eq!(refused.reason, Reason::Invalid);
    let ports = json!({ "type": "ClusterIP", "ports": [{ "port": 80 }] });
    let mut whole = service("a", ports);
    whole["status"] = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
    let made = world.update(&path, whole).await.expect("creates");
    assert_eq!((made["spec"].get("clusterIP"), &made["status"]), (None, &json!({ "loadBalancer": {} })));
    world.becomes_consistent().await;
}
