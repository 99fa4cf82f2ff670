//! Addresses and node ports of Services on the embedded engine in memory: never twice, never lost.
//!
//! A "crash" is a store that refuses every commit from the n-th on; the next registry on the same engine is the restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_apimachinery::options::{
    CreateOptions, DeleteOptions, ListOptions, PatchOptions, Query, UpdateOptions,
};
use forebay_apimachinery::{Key, Reason, Revision, Status};
use forebay_backend::{
    Backend, BoxFuture, Feed, FeedError, Outcome, Range, RangePage, ReadError, Size, Txn, TxnError, Versioned,
};
use forebay_embedded::{Engine, Options};
use forebay_registry::request::{Answer, Body, Outcome as Answered, PatchKind, Target};
use forebay_registry::{As, Config, Registry, ServicesConfig};
use forebay_rt::{Clock, Duration, Random, Tasks};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// A store that stops taking commits.
struct Stopping {
    engine: Arc<Engine>,
    left: AtomicUsize,
}

impl Backend for Stopping {
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, TxnError>> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => self.engine.commit(txn),
            Err(_) => Box::pin(async { Err(TxnError::Closed) }),
        }
    }
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        self.engine.get(key)
    }
    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        self.engine.range(range)
    }
    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        self.engine.barrier()
    }
    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        self.engine.oldest()
    }
    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        self.engine.feed(prefix, after)
    }
    fn size(&self) -> Size {
        self.engine.size()
    }
}

#[derive(Clone)]
struct World {
    registry: Registry,
    engine: Arc<Engine>,
    tasks: Tasks,
}

const SERVICES: &str = "@v1/services/default";
const ADDRESSES: &str = "networking.k8s.io@v1/ipaddresses";

fn config(ranges: &str, ports: &str) -> ServicesConfig {
    ServicesConfig {
        cluster_ip_ranges: ranges.split(',').map(|range| range.parse().expect("a range")).collect(),
        node_ports: ports.parse().expect("ports"),
        ..ServicesConfig::default()
    }
}

fn engine() -> Arc<Engine> {
    let (clock, _hand) = Clock::manual(1_700_000_000_000);
    Engine::open_in_memory(Options { clock, ..Options::default() }).expect("opens")
}

impl World {
    async fn new(ranges: &str, ports: &str) -> World {
        World::on(engine(), config(ranges, ports)).await
    }

    async fn on(engine: Arc<Engine>, services: ServicesConfig) -> World {
        let world = World::beside(engine.clone(), engine, services);
        world.registry.start().await.expect("starts");
        world
    }

    fn beside(engine: Arc<Engine>, backend: Arc<dyn Backend>, services: ServicesConfig) -> World {
        let config = Config {
            storage_prefix: "/registry".into(),
            event_ttl: None,
            min_request_timeout: Duration::from_secs(1800),
            service_account_admission: forebay_registry::ServiceAccountAdmission::Off,
            services,
        };
        let (tasks, (clock, _hand)) = (Tasks::new(), Clock::manual(1_700_000_000_000));
        let registry = Registry::new(config, backend, clock, Random::seeded(7), tasks.clone());
        World { registry, engine, tasks }
    }

    /// Ends this server; the next one on the engine finds what it left.
    async fn stop(self) -> Arc<Engine> {
        assert!(self.tasks.stop(Duration::from_secs(5)).await, "tasks end");
        self.engine
    }

    fn target(&self, path: &str) -> Target {
        let mut parts = path.split('/');
        let mut next = || parts.next().filter(|part| !part.is_empty()).map(String::from);
        let gv = next().expect("group@version");
        let (group, version) = gv.split_once('@').expect("group@version");
        let resource = next().expect("a resource");
        let served = self.registry.catalog().resource(group, version, &resource).expect("served").clone();
        let namespace = if served.namespaced { next() } else { None };
        Target { served, namespace, name: next(), subresource: next(), caller: None }
    }

    async fn create(&self, path: &str, body: Value) -> Result<Value, Status> {
        self.registry
            .create(&self.target(path), &Body::Value(body), &CreateOptions::default())
            .await
            .map(object)
    }

    async fn service(&self, name: &str, spec: Value) -> Result<Value, Status> {
        self.create(SERVICES, service(name, spec)).await
    }

    async fn patch(&self, name: &str, spec: Value) -> Result<Value, Status> {
        let (target, body) =
            (self.target(&format!("{SERVICES}/{name}")), json!({ "spec": spec }).to_string());
        let options = PatchOptions::default();
        self.registry.patch(&target, PatchKind::Merge, body.as_bytes(), &options).await.map(object)
    }

    async fn update(&self, path: &str, body: Value) -> Result<Value, Status> {
        self.registry
            .update(&self.target(path), &Body::Value(body), &UpdateOptions::default())
            .await
            .map(object)
    }

    async fn delete(&self, path: &str) -> Result<Value, Status> {
        self.registry.delete(&self.target(path), &DeleteOptions::default()).await.map(object)
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let options = ListOptions::from_query(&Query::parse("")).expect("options");
        let mut body = self.registry.list(&self.target(path), &options, As::Object).await.expect("lists");
        let mut out = Vec::new();
        while body.next_chunk(64, &mut out) {}
        let list: Value = serde_json::from_slice(&out).expect("a list is JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// `10.0.0.1=default/a 30000=default/a`: every claim and whose it is.
    async fn claims(&self) -> BTreeMap<String, String> {
        let mut claims = BTreeMap::new();
        for prefix in ["/registry/ipaddresses/", "/registry/ranges/servicenodeports/"] {
            let range = Range { prefix: Key::from(prefix), start_after: None, limit: 10_000, at: None };
            for (key, found) in self.engine.range(range).await.expect("reads").items {
                let value: Value = serde_json::from_slice(&found.value).expect("a claim is JSON");
                let parent = &value["spec"]["parentRef"];
                let owner = format!("{}/{}", text(&parent["namespace"]), text(&parent["name"]));
                claims.insert(key.as_str()[prefix.len()..].to_string(), owner);
            }
        }
        claims
    }

    /// What Services have, as claims should have it. Panics when two have the same.
    async fn holdings(&self) -> BTreeMap<String, String> {
        let mut holdings = BTreeMap::new();
        for service in self.list("@v1/services").await {
            let owner =
                format!("{}/{}", text(&service["metadata"]["namespace"]), text(&service["metadata"]["name"]));
            let spec = &service["spec"];
            let addresses = spec["clusterIPs"].as_array().into_iter().flatten().map(text);
            let ports = spec["ports"].as_array().into_iter().flatten();
            let ports: BTreeSet<i64> = ports
                .map(|port| &port["nodePort"])
                .chain([&spec["healthCheckNodePort"]])
                .filter_map(Value::as_i64)
                .collect();
            let items = addresses.filter(|address| address != "None");
            for item in items.chain(ports.iter().map(ToString::to_string)) {
                let other = holdings.insert(item.clone(), owner.clone());
                assert_eq!(other, None, "{item} is {owner}'s, too");
            }
        }
        holdings
    }

    async fn is_consistent(&self, when: &str) {
        assert_eq!(self.claims().await, self.holdings().await, "{when}");
    }

    /// Waits until claims are as they should be: who gave up waiting for a write has no other sign of its end.
    async fn becomes_consistent(&self) {
        let clock = Clock::system();
        let deadline = clock.now() + Duration::from_secs(10);
        while self.claims().await != self.holdings().await {
            assert!(clock.now() < deadline, "{:?}", self.claims().await);
            tokio::task::yield_now().await;
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_string()
}

fn service(name: &str, spec: Value) -> Value {
    let mut service = json!({
        "kind": "Service", "apiVersion": "v1", "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] },
    });
    for (name, value) in spec.as_object().into_iter().flatten() {
        service["spec"][name] = value.clone();
    }
    service
}

fn object(answer: Answer) -> Value {
    let (Answered::Object(bytes)
    | Answered::Created(bytes)
    | Answered::Accepted(bytes)
    | Answered::Success(bytes)) = answer.outcome;
    serde_json::from_slice(&bytes).expect("an answer is JSON")
}

/// Creates `count` Services at once through all of `worlds`: those that were made, and what the others were told.
async fn create_at_once(worlds: &[World], count: usize, spec: &Value) -> (Vec<Value>, Vec<Status>) {
    let mut creating = JoinSet::new();
    for number in 0..count {
        let (world, spec) = (worlds[number % worlds.len()].clone(), spec.clone());
        creating.spawn(async move { world.service(&format!("s-{number}"), spec).await });
    }
    let (mut made, mut refused) = (Vec::new(), Vec::new());
    while let Some(created) = creating.join_next().await {
        match created.expect("a task") {
            Ok(service) => made.push(service),
            Err(status) => refused.push(status),
        }
    }
    (made, refused)
}

fn distinct(services: &[Value], pointer: &str) -> usize {
    services
        .iter()
        .map(|service| service.pointer(pointer).expect("given").to_string())
        .collect::<BTreeSet<_>>()
        .len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_get_every_address_once_and_the_rest_is_told_that_the_range_is_full() {
    let world = World::new("10.0.0.0/27", "30000-30099").await;
    for round in 0..2 {
        let (made, refused) = create_at_once(std::slice::from_ref(&world), 50, &json!({})).await;
        assert_eq!((made.len(), distinct(&made, "/spec/clusterIP")), (30, 30), "round {round}");
        for status in refused {
            assert_eq!(status.reason, Reason::InternalError);
            let message = &status.message;
            assert!(
                message
                    .starts_with("Internal error occurred: failed to allocate a serviceIP for Service \"s-")
                    && message.ends_with("\": range is full"),
                "{message}"
            );
        }
        world.is_consistent("after a full round").await;
        for service in made {
            world
                .delete(&format!("{SERVICES}/{}", text(&service["metadata"]["name"])))
                .await
                .expect("deletes");
        }
        assert_eq!(world.claims().await, BTreeMap::new(), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_on_one_store_give_nothing_twice() {
    let engine = engine();
    let services =
        ServicesConfig { leak_grace: Duration::from_secs(60), ..config("10.0.0.0/27", "30000-30019") };
    let one = World::on(engine.clone(), services.clone()).await;
    let other = World::on(engine, services).await;
    let (made, refused) = create_at_once(&[one.clone(), other], 40, &json!({ "type": "NodePort" })).await;
    assert_eq!((made.len(), distinct(&made, "/spec/clusterIP")), (20, 20));
    assert_eq!(distinct(&made, "/spec/ports/0/nodePort"), 20);
    for status in refused {
        let full = "Internal error occurred: failed to allocate a nodePort: range is full";
        let addresses = status.message.ends_with("\": range is full");
        assert!(status.message == full || addresses, "{}", status.message);
    }
    one.is_consistent("what was refused holds nothing").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_gets_the_address_and_port_that_all_ask_for() {
    let world = World::new("10.0.0.0/24", "30000-30099").await;
    let spec = json!({ "type": "NodePort", "clusterIP": "10.0.0.9" });
    let (made, refused) = create_at_once(std::slice::from_ref(&world), 20, &spec).await;
    assert_eq!(made.len(), 1);
    for status in refused {
        assert_eq!(status.reason, Reason::Invalid);
        assert_eq!(status.causes[0].field, "spec.clusterIPs");
        let why = r#"Invalid value: ["10.0.0.9"]: failed to allocate IP 10.0.0.9: provided IP is already allocated"#;
        assert_eq!(status.causes[0].message, why);
    }
    let spec = json!({ "type": "NodePort", "ports": [{ "port": 1, "nodePort": 30_007 }] });
    let names: Vec<String> = (0..10).map(|number| format!("p-{number}")).collect();
    let mut told = Vec::new();
    for created in futures(names.iter().map(|name| world.service(name, spec.clone()))).await {
        told.extend(created.err().map(|status| status.causes[0].message.clone()));
    }
    assert_eq!(told, ["Invalid value: 30007: provided port is already allocated"; 9]);
    world.is_consistent("the others hold nothing").await;
}

/// All of `all`, polled together.
async fn futures<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        for (one, done) in all.iter_mut().filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(value) = one.as_mut().poll(context) {
                *done = Some(value);
            }
        }
        if all.iter().all(|(_, done)| done.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    all.into_iter().filter_map(|(_, done)| done).collect()
}

/// One Service's life, with every way to take and give back. Ends at the first failure.
async fn live(world: &World) -> Result<(), Status> {
    world.service("a", json!({ "type": "NodePort" })).await?;
    world.service("b", json!({ "ipFamilyPolicy": "PreferDualStack" })).await?;
    world.patch("a", json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Local" })).await?;
    world.patch("b", json!({ "ipFamilyPolicy": "SingleStack" })).await?;
    world.patch("b", json!({ "ipFamilyPolicy": "RequireDualStack" })).await?;
    world.patch("a", json!({ "type": "ClusterIP" })).await?;
    world.patch("a", json!({ "type": "ExternalName", "externalName": "x.y" })).await?;
    world.patch("a", json!({ "type": "NodePort", "externalName": null })).await?;
    world.service("c", json!({ "clusterIP": "None" })).await?;
    // Taken already: what it claimed on the way is given back.
    match world.service("a", json!({ "type": "NodePort" })).await {
        Err(status) if status.reason == Reason::AlreadyExists => {}
        other => return other.map(drop),
    }
    world.delete(&format!("{SERVICES}/b")).await?;
    world.delete(&format!("{SERVICES}/a")).await?;
    world.delete(&format!("{SERVICES}/c")).await?;
    Ok(())
}

#[tokio::test]
async fn whatever_the_commit_at_which_it_stops_nothing_is_lost_and_nothing_is_double_after_a_restart() {
    let services = config("10.0.0.0/28,fd00::/120", "30000-30009");
    let mut ended = false;
    for commits in 0.. {
        let engine = World::on(engine(), services.clone()).await.stop().await;
        let backend = Arc::new(Stopping { engine: engine.clone(), left: AtomicUsize::new(usize::MAX) });
        let world = World::beside(engine, backend.clone(), services.clone());
        world.registry.start().await.expect("starts");
        backend.left.store(commits, Ordering::SeqCst);
        ended = live(&world).await.is_ok() && backend.left.load(Ordering::SeqCst) > 0;
        let world = World::on(world.stop().await, services.clone()).await;
        world.becomes_consistent().await;
        // Nothing that is free is taken for taken: the rest of the range can be had.
        let taken = world.claims().await.keys().filter(|item| item.starts_with("10.")).count();
        let (made, _) = create_at_once(std::slice::from_ref(&world), 20, &json!({})).await;
        assert_eq!(made.len(), 14 - taken, "after {commits} commits");
        world.is_consistent(&format!("after {commits} commits")).await;
        world.stop().await;
        if ended {
            break;
        }
    }
    assert!(ended);
}

#[tokio::test]
async fn a_write_that_nobody_waits_for_ends_all_the_same() {
    let world = World::new("10.0.0.0/24", "30000-30099").await;
    for polls in 1..12 {
        let spec = json!({ "type": "NodePort" });
        let name = format!("s-{polls}");
        let mut creating = Box::pin(world.service(&name, spec));
        for _ in 0..polls {
            let once =
                std::future::poll_fn(|context| std::task::Poll::Ready(creating.as_mut().poll(context)));
            if once.await.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(creating);
    }
    world.becomes_consistent().await;
}

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
async fn what_hands_have_changed_is_repaired_at_the_next_start() {
    let services = config("10.0.0.0/24", "30000-30099");
    let world = World::on(engine(), services.clone()).await;
    let made = world.service("a", json!({ "type": "NodePort" })).await.expect("creates");
    world.service("b", json!({ "clusterIP": "10.0.0.77" })).await.expect("creates");
    let address = text(&made["spec"]["clusterIP"]);
    world.delete(&format!("{ADDRESSES}/{address}")).await.expect("deletes");
    let foreign = json!({
        "kind": "IPAddress", "apiVersion": "networking.k8s.io/v1", "metadata": { "name": "10.0.0.200" },
        "spec": { "parentRef": { "group": "gateway.networking.k8s.io", "resource": "gateways", "name": "g" } },
    });
    world.create(ADDRESSES, foreign).await.expect("creates");
    let world = World::on(world.stop().await, services).await;
    let status = world.service("c", json!({ "clusterIP": address })).await.expect_err("it is a's");
    assert_eq!(status.reason, Reason::Invalid);
    let mut claims = world.claims().await;
    assert_eq!(claims.remove("10.0.0.200").as_deref(), Some("/g"), "what others reserve is theirs");
    assert_eq!(claims, world.holdings().await);
    let status = world.service("d", json!({ "clusterIP": "10.0.0.200" })).await.expect_err("it is reserved");
    assert_eq!(status.reason, Reason::Invalid);
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
