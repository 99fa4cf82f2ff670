//! A registry on the embedded engine in memory, seen from outside: what Services have, and what is claimed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_api::{Answer, Body, PatchKind};
use forebay_apimachinery::options::{
    CreateOptions, DeleteOptions, ListOptions, PatchOptions, Query, UpdateOptions,
};
use forebay_apimachinery::{Key, Lease, Status};
use forebay_backend::{Backend, BoxFuture, Expect, Layer, Op, Range, Txn, TxnError, TxnResponse};
use forebay_catalog::Target;
use forebay_embedded::{Engine, Options};
use forebay_reads::As;
use forebay_registry::{Config, Registry, ServicesConfig};
use forebay_rt::{Clock, Duration, Random, Tasks};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// A store that stops taking commits.
pub struct Stopping {
    pub engine: Arc<Engine>,
    pub left: AtomicUsize,
}

impl Layer for Stopping {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine.clone()
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => self.engine.commit(txn),
            Err(_) => Box::pin(async { Err(TxnError::Closed) }),
        }
    }
}

#[derive(Clone)]
pub struct World {
    pub registry: Registry,
    pub engine: Arc<Engine>,
    tasks: Tasks,
}

pub const SERVICES: &str = "@v1/services/default";
pub const ADDRESSES: &str = "networking.k8s.io@v1/ipaddresses";

pub fn config(ranges: &str, ports: &str) -> ServicesConfig {
    ServicesConfig {
        cluster_ip_ranges: ranges.split(',').map(|range| range.parse().expect("a range")).collect(),
        node_ports: ports.parse().expect("ports"),
        ..ServicesConfig::default()
    }
}

pub fn engine() -> Arc<Engine> {
    let (clock, _hand) = Clock::manual(1_700_000_000_000);
    Engine::open_in_memory(Options { clock, ..Options::default() }).expect("opens")
}

impl World {
    pub async fn new(ranges: &str, ports: &str) -> World {
        World::on(engine(), config(ranges, ports)).await
    }

    pub async fn on(engine: Arc<Engine>, services: ServicesConfig) -> World {
        let world = World::beside(engine.clone(), engine, services);
        world.registry.start().await.expect("starts");
        world
    }

    pub fn beside(engine: Arc<Engine>, backend: Arc<dyn Backend>, services: ServicesConfig) -> World {
        let config = Config { services, ..Config::default() };
        let (tasks, (clock, _hand)) = (Tasks::new(), Clock::manual(1_700_000_000_000));
        let registry = Registry::new(config, backend, clock, Random::seeded(7), tasks.clone());
        World { registry, engine, tasks }
    }

    /// Ends this server; the next one on the engine finds what it left.
    pub async fn stop(self) -> Arc<Engine> {
        assert!(self.tasks.stop(Duration::from_secs(60)).await, "tasks end");
        self.engine
    }

    pub fn target(&self, path: &str) -> Target {
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

    pub async fn create(&self, path: &str, body: Value) -> Result<Value, Status> {
        self.registry
            .create(&self.target(path), &Body::Value(body), &CreateOptions::default())
            .await
            .map(object)
    }

    pub async fn service(&self, name: &str, spec: Value) -> Result<Value, Status> {
        self.create(SERVICES, service(name, spec)).await
    }

    pub async fn patch(&self, name: &str, spec: Value) -> Result<Value, Status> {
        let (target, body) =
            (self.target(&format!("{SERVICES}/{name}")), json!({ "spec": spec }).to_string());
        let options = PatchOptions::default();
        self.registry.patch(&target, PatchKind::Merge, body.as_bytes(), &options).await.map(object)
    }

    pub async fn update(&self, path: &str, body: Value) -> Result<Value, Status> {
        self.registry
            .update(&self.target(path), &Body::Value(body), &UpdateOptions::default())
            .await
            .map(object)
    }

    pub async fn delete(&self, path: &str) -> Result<Value, Status> {
        self.registry.delete(&self.target(path), &DeleteOptions::default()).await.map(object)
    }

    pub async fn list(&self, path: &str) -> Vec<Value> {
        let options = ListOptions::from_query(&Query::parse("")).expect("options");
        let mut body = self.registry.list(&self.target(path), &options, As::Object).await.expect("lists");
        let mut out = Vec::new();
        while body.next_chunk(64, &mut out) {}
        let list: Value = serde_json::from_slice(&out).expect("a list is JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// `10.0.0.1=default/a 30000=default/a`: every claim and whose it is.
    pub async fn claims(&self) -> BTreeMap<String, String> {
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
    pub async fn holdings(&self) -> BTreeMap<String, String> {
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

    pub async fn is_consistent(&self, when: &str) {
        assert_eq!(self.claims().await, self.holdings().await, "{when}");
    }

    /// Waits until claims are as they should be: who gave up waiting for a write has no other sign of its
    /// end.
    pub async fn becomes_consistent(&self) {
        let clock = Clock::system();
        let deadline = clock.now() + Duration::from_secs(60);
        while self.claims().await != self.holdings().await {
            assert!(clock.now() < deadline, "{:?}", self.claims().await);
            tokio::task::yield_now().await;
        }
    }
}

/// Puts `value` in the place of what is at `key`, past every server; nothing deletes it.
pub async fn put_raw(engine: &Engine, key: &str, value: Option<&'static [u8]>) {
    let found = engine.get(&key.into()).await.expect("reads").expect("something is there");
    let op = value.map_or(Op::Delete, |value| Op::Put { value: value.into(), ttl: None });
    let done = engine.commit(Txn { key: key.into(), expect: Expect::At(found.revision), op }).await;
    assert!(matches!(done, Ok(TxnResponse::Committed(_))), "{key}: {done:?}");
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_string()
}

pub fn service(name: &str, spec: Value) -> Value {
    let mut service = json!({
        "kind": "Service", "apiVersion": "v1", "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] },
    });
    for (name, value) in spec.as_object().into_iter().flatten() {
        service["spec"][name] = value.clone();
    }
    service
}

pub fn object(answer: Answer) -> Value {
    serde_json::from_slice(&answer.outcome.json()).expect("an answer is JSON")
}

/// Creates `count` Services at once through all of `worlds`: those that were made, and what the others were
/// told.
pub async fn create_at_once(worlds: &[World], count: usize, spec: &Value) -> (Vec<Value>, Vec<Status>) {
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

pub fn distinct(services: &[Value], pointer: &str) -> usize {
    services
        .iter()
        .map(|service| service.pointer(pointer).expect("given").to_string())
        .collect::<BTreeSet<_>>()
        .len()
}
