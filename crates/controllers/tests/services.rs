//! Services lead to the pods that they select: by EndpointSlices, and by Endpoints.

mod world;

use forebay_apimachinery::options::ListOptions;
use forebay_registry::Notice;
use serde_json::{Value, json};
use world::{World, namespace};

const CONTROLLERS: &str = "endpoints-controller,endpointslice-controller,garbage-collector-controller";
const SERVICES: &str = "@v1/services/default";
const PODS: &str = "@v1/pods/default";
const SLICES: &str = "discovery.k8s.io@v1/endpointslices/default";
const ENDPOINTS: &str = "@v1/endpoints/default";

fn service(name: &str, change: Value) -> Value {
    let mut spec = json!({
        "selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}],
    });
    for (member, value) in change.as_object().into_iter().flatten() {
        spec[member] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"l": "v"}}, "spec": spec})
}

async fn node(world: &World, name: &str, zone: &str) {
    let labels = json!({"topology.kubernetes.io/zone": zone});
    world
        .create(
            "@v1/nodes",
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}),
        )
        .await;
}

async fn pod(world: &World, name: &str, app: &str, node: &str) {
    let container = json!({"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": 8080, "protocol": "TCP"}]});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"nodeName": node, "containers": [container]},
    });
    world.create(PODS, pod).await;
}

async fn run(world: &World, name: &str, ip: &str, ready: bool) {
    let now = world.registry.now_rfc3339();
    let ready = if ready { "True" } else { "False" };
    let status = json!({
        "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": now}],
    });
    world.merge(&format!("{PODS}/{name}/status"), json!({"status": status})).await;
}

/// The slices of a service, by name.
async fn slices(world: &World, service: &str) -> Vec<Value> {
    let target = world.target(SLICES);
    let all = world.registry.objects(&target).await.expect("a look");
    let own = all.iter().filter(|slice| slice.label("kubernetes.io/service-name") == Some(service));
    own.map(|slice| target.served.to_value(slice).expect("a slice")).collect()
}

/// Waits until `holds` of the slices of a service.
async fn until(world: &World, service: &str, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let mut informer =
        world.registry.informer(&world.target(SLICES), &ListOptions::default()).expect("listens");
    let deadline = world.registry.clock().now() + std::time::Duration::from_secs(120);
    loop {
        while let Some(notice) = informer.try_next() {
            assert!(!matches!(notice, Notice::Ended));
        }
        let slices = slices(world, service).await;
        if holds(&slices) {
            return slices;
        }
        tokio::select! {
            () = informer.ready() => {}
            () = world.registry.clock().sleep_until(deadline) => panic!("still {slices:#?}"),
        }
    }
}

fn addresses(slices: &[Value]) -> Vec<(String, bool)> {
    let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let mut all: Vec<(String, bool)> = endpoints
        .map(|endpoint| {
            let address = endpoint["addresses"][0].as_str().unwrap_or_default().to_owned();
            (address, endpoint["conditions"]["ready"] == true)
        })
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn pods_are_led_to_once_they_have_addresses_and_no_more_once_they_are_gone() {
    let world = World::with(CONTROLLERS).await;
    node(&world, "n", "z").await;
    world.create(SERVICES, service("web", json!({}))).await;
    let empty = until(&world, "web", |slices| slices.len() == 1).await;
    assert_eq!((addresses(&empty), &empty[0]["ports"]), (vec![], &Value::Null));
    world.until_there(&format!("{ENDPOINTS}/web")).await;

    pod(&world, "a", "web", "n").await;
    pod(&world, "b", "web", "n").await;
    pod(&world, "c", "other", "n").await;
    for (name, ip, ready) in [("a", "10.1.0.1", true), ("b", "10.1.0.2", false), ("c", "10.1.0.3", true)] {
        run(&world, name, ip, ready).await;
    }
    let wanted = [("10.1.0.1".to_owned(), true), ("10.1.0.2".to_owned(), false)];
    let full = until(&world, "web", |slices| addresses(slices) == wanted).await;
    assert_eq!((full.len(), &full[0]["metadata"]["name"]), (1, &empty[0]["metadata"]["name"]));
    assert_eq!(full[0]["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    let first = &full[0]["endpoints"][0];
    assert_eq!((&first["nodeName"], &first["zone"]), (&json!("n"), &json!("z")));
    assert_eq!(first["conditions"], json!({"ready": true, "serving": true, "terminating": false}));
    assert_eq!((&first["targetRef"]["kind"], &first["targetRef"]["name"]), (&json!("Pod"), &json!("a")));
    let labels = &full[0]["metadata"]["labels"];
    assert_eq!((&labels["l"], &labels["kubernetes.io/service-name"]), (&json!("v"), &json!("web")));
    world
        .until(&format!("{ENDPOINTS}/web"), |endpoints| {
            let subset = endpoints.map(|endpoints| &endpoints["subsets"][0]);
            subset.is_some_and(|subset| {
                subset["addresses"][0]["ip"] == "10.1.0.1"
                    && subset["notReadyAddresses"][0]["ip"] == "10.1.0.2"
                    && subset["ports"] == json!([{"name": "http", "port": 8080, "protocol": "TCP"}])
            })
        })
        .await;

    // One is ready now, one is ended with grace, and one has other labels.
    run(&world, "b", "10.1.0.2", true).await;
    world.delete(&format!("{PODS}/a"), None).await;
    let ending = until(&world, "web", |slices| {
        addresses(slices) == [("10.1.0.1".to_owned(), false), ("10.1.0.2".to_owned(), true)]
    })
    .await;
    assert_eq!(
        ending[0]["endpoints"][0]["conditions"],
        json!({"ready": false, "serving": true, "terminating": true})
    );
    world.merge(&format!("{PODS}/b"), json!({"metadata": {"labels": {"app": "not"}}})).await;
    world.delete_now(&format!("{PODS}/a")).await;
    until(&world, "web", |slices| slices.len() == 1 && addresses(slices).is_empty()).await;

    world.delete(&format!("{SERVICES}/web"), None).await;
    until(&world, "web", <[Value]>::is_empty).await;
    world.until_gone(&format!("{ENDPOINTS}/web")).await;
}

#[tokio::test]
async fn what_selects_nothing_and_what_is_led_by_others_is_let_be() {
    let world = World::with("-*").await;
    world
        .create(ENDPOINTS, json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "lost"}}))
        .await;
    let mut own = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "leader"}});
    own["metadata"]["annotations"] = json!({"control-plane.alpha.kubernetes.io/leader": "{}"});
    world.create(ENDPOINTS, own).await;
    world.create(SERVICES, service("plain", json!({"selector": null}))).await;
    world
        .create(ENDPOINTS, json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "plain"}}))
        .await;
    let world = world.restart(CONTROLLERS).await;
    // What has no service is gone once the controller looks; the rest was looked at by then.
    world.until_gone(&format!("{ENDPOINTS}/lost")).await;
    world.create(SERVICES, service("last", json!({}))).await;
    until(&world, "last", |slices| slices.len() == 1).await;
    world.until_there(&format!("{ENDPOINTS}/last")).await;
    for there in ["leader", "plain"] {
        assert!(world.find(&format!("{ENDPOINTS}/{there}")).await.is_some(), "{there}");
    }
    assert!(slices(&world, "plain").await.is_empty());
}

#[tokio::test]
async fn headless_services_publish_pods_that_are_not_ready_by_their_hostnames() {
    let world = World::with(CONTROLLERS).await;
    let change = json!({"clusterIP": "None", "ports": null, "publishNotReadyAddresses": true});
    world.create(SERVICES, service("db", change)).await;
    let container = json!({"name": "c", "image": "i"});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0", "labels": {"app": "db"}},
        "spec": {"nodeName": "n", "hostname": "db-0", "subdomain": "db", "containers": [container]},
    });
    world.create(PODS, pod).await;
    run(&world, "db-0", "10.1.0.1", false).await;
    let slices = until(&world, "db", |slices| addresses(slices) == [("10.1.0.1".to_owned(), true)]).await;
    let endpoint = &slices[0]["endpoints"][0];
    assert_eq!(endpoint["hostname"], "db-0");
    assert_eq!(endpoint["conditions"], json!({"ready": true, "serving": false, "terminating": false}));
    assert_eq!(slices[0]["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    world
        .until(&format!("{ENDPOINTS}/db"), |endpoints| {
            endpoints.is_some_and(|endpoints| endpoints["subsets"][0]["addresses"][0]["hostname"] == "db-0")
        })
        .await;
}

#[tokio::test]
async fn a_pod_on_a_node_that_is_not_there_is_led_to_once_the_node_is() {
    let world = World::with(CONTROLLERS).await;
    world.create(SERVICES, service("web", json!({}))).await;
    pod(&world, "a", "web", "late").await;
    run(&world, "a", "10.1.0.1", true).await;
    world
        .until(&format!("{ENDPOINTS}/web"), |endpoints| {
            endpoints.is_some_and(|endpoints| endpoints["subsets"][0]["addresses"][0]["ip"] == "10.1.0.1")
        })
        .await;
    assert!(addresses(&until(&world, "web", |slices| slices.len() == 1).await).is_empty());
    let lost = "Error updating Endpoint Slices for Service default/web: skipping Pod a for Service default/web: Node \
                late Not Found";
    until_said(&world, ("Warning", "FailedToUpdateEndpointSlices", lost)).await;
    node(&world, "late", "z").await;
    until(&world, "web", |slices| addresses(slices) == [("10.1.0.1".to_owned(), true)]).await;
}

/// A node that is ready, and has processors.
async fn ready_node(world: &World, name: &str, zone: &str) {
    let labels = json!({"topology.kubernetes.io/zone": zone});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    world.create("@v1/nodes", node).await;
    is_ready(world, name, "True").await;
}

async fn is_ready(world: &World, node: &str, status: &str) {
    let condition = json!({"type": "Ready", "status": status, "reason": "r", "message": "m"});
    let status = json!({"allocatable": {"cpu": "2"}, "capacity": {"cpu": "2"}, "conditions": [condition]});
    world.merge(&format!("@v1/nodes/{node}/status"), json!({"status": status})).await;
}

/// Waits until an event says so of a service.
async fn until_said(world: &World, wanted: (&str, &str, &str)) {
    let target = world.target("@v1/events/default");
    let mut informer = world.registry.informer(&target, &ListOptions::default()).expect("listens");
    let deadline = world.registry.clock().now() + std::time::Duration::from_secs(120);
    loop {
        while let Some(notice) = informer.try_next() {
            let Notice::Put(event) = notice else { continue };
            let event = target.served.to_value(&event).expect("an event");
            let said = ["type", "reason", "message"].map(|member| event[member].as_str().unwrap_or_default());
            assert_eq!(event["involvedObject"]["kind"], "Service");
            if (said[0], said[1], said[2]) == wanted {
                return;
            }
        }
        tokio::select! {
            () = informer.ready() => {}
            () = world.registry.clock().sleep_until(deadline) => panic!("nobody says {wanted:?}"),
        }
    }
}

#[tokio::test]
async fn a_service_that_leaves_hints_to_the_server_has_them_while_nodes_say_where_they_are() {
    let world = World::with("endpointslice-controller").await;
    for (name, zone) in [("n-a", "a"), ("n-b", "b")] {
        ready_node(&world, name, zone).await;
    }
    let mut web = service("web", json!({}));
    web["metadata"]["annotations"] = json!({"service.kubernetes.io/topology-mode": "Auto"});
    world.create(SERVICES, web).await;
    for (name, node, ip) in [("a", "n-a", "10.1.0.1"), ("b", "n-b", "10.1.0.2")] {
        pod(&world, name, "web", node).await;
        run(&world, name, ip, true).await;
    }
    let zones = |slices: &[Value]| {
        let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
        let zone = |endpoint: &Value| endpoint["hints"]["forZones"][0]["name"].as_str().map(str::to_owned);
        let mut all: Vec<Option<String>> = endpoints.map(zone).collect();
        all.sort();
        all
    };
    let own = [Some("a".to_owned()), Some("b".to_owned())];
    until(&world, "web", |slices| zones(slices) == own).await;
    let enabled = "Topology Aware Hints has been enabled, addressType: IPv4";
    until_said(&world, ("Normal", "TopologyAwareHintsEnabled", enabled)).await;
    is_ready(&world, "n-b", "False").await;
    until(&world, "web", |slices| zones(slices) == [None, None]).await;
    let disabled = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, \
                    addressType: IPv4";
    until_said(&world, ("Warning", "TopologyAwareHintsDisabled", disabled)).await;
    is_ready(&world, "n-b", "True").await;
    until(&world, "web", |slices| zones(slices) == own).await;
    let annotations = json!({"metadata": {"annotations": {"service.kubernetes.io/topology-mode": null}}});
    world.merge(&format!("{SERVICES}/web"), annotations).await;
    until(&world, "web", |slices| zones(slices) == [None, None]).await;
    let ended = "Topology Aware Hints has been disabled, addressType: IPv4";
    until_said(&world, ("Warning", "TopologyAwareHintsDisabled", ended)).await;
}

#[tokio::test]
async fn slices_that_others_spoil_are_put_right_and_two_servers_make_one() {
    let world = World::with("endpointslice-controller").await;
    world.create(SERVICES, service("web", json!({}))).await;
    let first = until(&world, "web", |slices| slices.len() == 1).await;
    let name = first[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    let path = format!("{SLICES}/{name}");
    world.merge(&path, json!({"metadata": {"labels": {"l": "spoilt"}}})).await;
    world.until(&path, |slice| slice.is_some_and(|slice| slice["metadata"]["labels"]["l"] == "v")).await;
    world.delete(&path, None).await;
    let again = until(&world, "web", |slices| slices.len() == 1).await;
    assert_eq!(again[0]["metadata"]["name"], name.as_str(), "another server would have called it the same");
    assert!(name.starts_with("web-") && name.len() == "web-".len() + 5, "{name}");
}

#[tokio::test]
async fn endpoints_of_a_service_without_a_selector_are_mirrored_as_long_as_it_has_none() {
    let world = World::with("endpointslice-mirroring-controller,garbage-collector-controller").await;
    world.create(SERVICES, service("own", json!({"selector": null}))).await;
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "own"},
        "subsets": [{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"name": "http", "port": 8080}]}],
    });
    world.create(ENDPOINTS, endpoints).await;
    let slices = until(&world, "own", |slices| addresses(slices) == [("10.9.0.1".to_owned(), true)]).await;
    let labels = &slices[0]["metadata"]["labels"];
    assert_eq!(labels["endpointslice.kubernetes.io/managed-by"], "endpointslicemirroring-controller.k8s.io");
    world
        .merge(&format!("{ENDPOINTS}/own"), json!({"subsets": [{"notReadyAddresses": [{"ip": "10.9.0.2"}]}]}))
        .await;
    until(&world, "own", |slices| addresses(slices) == [("10.9.0.2".to_owned(), false)]).await;
    world.merge(&format!("{SERVICES}/own"), json!({"spec": {"selector": {"app": "own"}}})).await;
    until(&world, "own", <[Value]>::is_empty).await;
}

#[tokio::test]
async fn a_namespace_ends_though_it_has_services() {
    let world = World::with("*").await;
    world.create("@v1/namespaces", namespace("passing")).await;
    world.create("@v1/services/passing", service("web", json!({}))).await;
    world.until_there("@v1/endpoints/passing/web").await;
    world.delete("@v1/namespaces/passing", None).await;
    world.until_gone("@v1/namespaces/passing").await;
}
