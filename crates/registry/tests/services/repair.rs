//! What comes back by itself: claims that hands have changed, and the `kubernetes` Service.

use forebay_apimachinery::{Key, Reason};
use forebay_backend::{Backend, Expect, Op, Txn};
use forebay_registry::ServicesConfig;
use forebay_rt::{Clock, Duration};
use serde_json::json;

use crate::world::{ADDRESSES, World, config, engine, put_raw, text};

#[tokio::test]
async fn what_is_deleted_by_hand_though_it_is_in_use_comes_back() {
    let services = ServicesConfig {
        endpoint: Some(([192, 0, 2, 1].into(), 6443)),
        ..config("10.0.0.0/24", "30000-30099")
    };
    let world = World::on(engine(), services).await;
    let made = world.service("a", json!({})).await.expect("creates");
    let address = text(&made["spec"]["clusterIP"]);
    world.delete(&format!("{ADDRESSES}/{address}")).await.expect("deletes");
    world.is_consistent("it is claimed again before the delete is answered").await;
    for path in [
        "@v1/services/default",
        "@v1/endpoints/default",
        "discovery.k8s.io@v1/endpointslices/default",
        "networking.k8s.io@v1/servicecidrs",
    ] {
        world.delete(&format!("{path}/kubernetes")).await.expect("deletes");
        let clock = Clock::system();
        let deadline = clock.now() + Duration::from_secs(60);
        while !world.list(path).await.iter().any(|found| found["metadata"]["name"] == "kubernetes") {
            assert!(clock.now() < deadline, "{path} does not come back");
            tokio::task::yield_now().await;
        }
    }
    world.becomes_consistent().await;
}

#[tokio::test]
async fn what_hands_have_changed_is_repaired_at_the_next_start() {
    let services = config("10.0.0.0/24", "30000-30099");
    let world = World::on(engine(), services.clone()).await;
    let made = world.service("a", json!({ "type": "NodePort" })).await.expect("creates");
    world.service("b", json!({ "clusterIP": "10.0.0.77" })).await.expect("creates");
    let address = text(&made["spec"]["clusterIP"]);
    let stray = json!({ "metadata": { "name": address }, "spec": { "parentRef": { "resource": "pods", "name": "x", "namespace": "default" } } });
    let key = Key::from(format!("/registry/ipaddresses/{address}"));
    let found = world.engine.get(&key).await.expect("reads").expect("a claim");
    let op = Op::Put {
        value: format!(
            "{{\"kind\":\"IPAddress\",\"apiVersion\":\"networking.k8s.io/v1\",{}",
            &stray.to_string()[1..]
        )
        .into(),
        ttl: None,
    };
    let txn = Txn { key, expect: Expect::At(found.revision), op };
    world.engine.commit(txn).await.expect("commits");
    let port = made["spec"]["ports"][0]["nodePort"].as_i64().expect("a node port");
    let key = Key::from(format!("/registry/ranges/servicenodeports/{port}"));
    let found = world.engine.get(&key).await.expect("reads").expect("a claim");
    let txn = Txn { key, expect: Expect::At(found.revision), op: Op::Delete };
    world.engine.commit(txn).await.expect("commits");
    let foreign = json!({
        "kind": "IPAddress", "apiVersion": "networking.k8s.io/v1", "metadata": { "name": "10.0.0.200" },
        "spec": { "parentRef": { "group": "gateway.networking.k8s.io", "resource": "gateways", "name": "g" } },
    });
    world.create(ADDRESSES, foreign).await.expect("creates");
    let world = World::on(world.stop().await, services).await;
    let status = world.service("c", json!({ "clusterIP": address })).await.expect_err("it is a's");
    assert_eq!(status.reason, Reason::Invalid);
    let spec = json!({ "type": "NodePort", "ports": [{ "port": 1, "nodePort": port }] });
    let status = world.service("c", spec).await.expect_err("it is a's");
    assert_eq!(status.causes[0].field, "spec.ports[0].nodePort");
    let mut claims = world.claims().await;
    assert_eq!(claims.remove("10.0.0.200").as_deref(), Some("/g"), "what others reserve is theirs");
    assert_eq!(claims, world.holdings().await);
    let status = world.service("d", json!({ "clusterIP": "10.0.0.200" })).await.expect_err("it is reserved");
    assert_eq!(status.reason, Reason::Invalid);
}

#[tokio::test]
async fn a_service_that_cannot_be_read_keeps_its_claims_and_keeps_nobody_else_from_theirs() {
    let services = config("10.0.0.0/24", "30000-30099");
    let world = World::on(engine(), services.clone()).await;
    for name in ["readable", "broken", "garbled", "gone"] {
        world.service(name, json!({ "type": "NodePort" })).await.expect("creates");
    }
    let before = world.claims().await;
    let engine = world.stop().await;
    let key = |name: &str| format!("/registry/services/specs/default/{name}");
    put_raw(&engine, &key("broken"), Some(b"k8s:enc:aescbc:v1:key1:xxxx")).await;
    // The cache takes it, and nobody can read what it says.
    let garbled = br#"{"kind":"Service","apiVersion":"v1","metadata":{"name":"garbled","namespace":"default","uid":"u"},"spec":{"x":1.2.3}}"#;
    put_raw(&engine, &key("garbled"), Some(garbled)).await;
    // Gone without giving anything back.
    put_raw(&engine, &key("gone"), None).await;
    let world = World::on(engine, services).await;
    world.service("new", json!({ "type": "NodePort" })).await.expect("claims have been repaired");
    let mut after = world.claims().await;
    after.retain(|_, owner| owner != "default/new");
    let mut kept = before;
    kept.retain(|_, owner| owner != "default/gone");
    assert_eq!(kept.len(), 6, "an address and a port for each of three");
    assert_eq!(after, kept);
}

#[tokio::test]
async fn a_range_that_cannot_be_read_gives_nothing_and_stops_nothing() {
    let services = config("10.0.0.0/24", "30000-30099");
    let world = World::on(engine(), services.clone()).await;
    let made = world.service("a", json!({})).await.expect("creates");
    let engine = world.stop().await;
    put_raw(&engine, "/registry/servicecidrs/kubernetes", Some(b"garbage")).await;
    let address = text(&made["spec"]["clusterIP"]);
    put_raw(&engine, &format!("/registry/ipaddresses/{address}"), None).await;
    let world = World::on(engine, services).await;
    world.is_consistent("what a Service has is claimed, whichever range it may be of").await;
    world.service("headless", json!({ "clusterIP": "None" })).await.expect("takes nothing");
    let status = world.service("b", json!({})).await.expect_err("no range is known");
    assert_eq!(status.reason, Reason::InternalError);
}

#[tokio::test]
async fn what_cannot_be_read_of_the_kubernetes_service_does_not_keep_claims_from_being_repaired() {
    let services = ServicesConfig {
        endpoint: Some(([192, 0, 2, 1].into(), 6443)),
        ..config("10.0.0.0/24", "30000-30099")
    };
    let paths = ["services/specs", "services/endpoints", "endpointslices"];
    for path in paths {
        let engine = World::on(engine(), services.clone()).await.stop().await;
        put_raw(&engine, &format!("/registry/{path}/default/kubernetes"), Some(b"garbage")).await;
        let world = World::on(engine, services.clone()).await;
        world.service("a", json!({})).await.unwrap_or_else(|status| panic!("{path}: {}", status.message));
    }
}

#[tokio::test]
async fn the_kubernetes_service_is_there_and_follows_the_server() {
    let at = |address: [u8; 4], port: u16| ServicesConfig {
        endpoint: Some((address.into(), port)),
        ..config("10.0.0.0/24", "30000-30099")
    };
    let world = World::on(engine(), at([192, 0, 2, 1], 6443)).await;
    let services = world.list("@v1/services").await;
    let spec = &services[0]["spec"];
    assert_eq!((services.len(), text(&services[0]["metadata"]["name"])), (1, "kubernetes".into()));
    assert_eq!(
        *spec,
        json!({
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "type": "ClusterIP",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 }],
        })
    );
    let cidrs = world.list("networking.k8s.io@v1/servicecidrs").await;
    assert_eq!(cidrs[0]["spec"]["cidrs"], json!(["10.0.0.0/24"]));
    assert_eq!(cidrs[0]["status"]["conditions"][0]["type"], "Ready");
    let owners = cidrs[0]["metadata"]["managedFields"].as_array().expect("its owners");
    let owned = owners.iter().find(|owner| owner["subresource"] == "status").expect("who says its status");
    assert_eq!(
        (&owned["manager"], &owned["operation"]),
        (&"kubernetes-service-cidr-controller".into(), &"Apply".into())
    );
    let of_condition =
        json!({ ".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:status": {}, "f:type": {} });
    assert_eq!(
        owned["fieldsV1"],
        json!({ "f:status": { "f:conditions": { "k:{\"type\":\"Ready\"}": of_condition } } })
    );
    let uid = text(&services[0]["metadata"]["uid"]);

    let engine = world.stop().await;
    let mut both = at([127, 0, 0, 1], 7443);
    both.cluster_ip_ranges.push("fd00::/112".parse().expect("a range"));
    let world = World::on(engine, both).await;
    let endpoints = &world.list("@v1/endpoints").await[0];
    assert_eq!(endpoints["metadata"]["labels"], json!({ "endpointslice.kubernetes.io/skip-mirror": "true" }));
    let subset = json!([{ "addresses": [{ "ip": "127.0.0.1" }], "ports": [{ "name": "https", "port": 7443, "protocol": "TCP" }] }]);
    assert_eq!(endpoints["subsets"], subset);
    let slice = &world.list("discovery.k8s.io@v1/endpointslices").await[0];
    assert_eq!(slice["metadata"]["labels"], json!({ "kubernetes.io/service-name": "kubernetes" }));
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["endpoints"], json!([{ "addresses": ["127.0.0.1"], "conditions": { "ready": true } }]));
    assert_eq!(slice["ports"], json!([{ "name": "https", "port": 7443, "protocol": "TCP" }]));
    let cidrs = world.list("networking.k8s.io@v1/servicecidrs").await;
    assert_eq!(cidrs[0]["spec"]["cidrs"], json!(["10.0.0.0/24", "fd00::/112"]), "a second family is added");
    let service = &world.list("@v1/services").await[0];
    assert_eq!(text(&service["metadata"]["uid"]), uid, "it is still the same");
    world.is_consistent("it has its address").await;
}
