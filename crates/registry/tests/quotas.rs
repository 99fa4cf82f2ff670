//! What writes are counted for in quotas, and what they hold while they wait for that.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use forebay_api::{Answer, Body, PatchKind};
use forebay_apimachinery::lease::Ledger;
use forebay_apimachinery::options::{CreateOptions, PatchOptions};
use forebay_apimachinery::{Lease, Reason, Status};
use forebay_catalog::Target;
use forebay_embedded::{Engine, Options};
use forebay_registry::{Config, Registry};
use forebay_rt::{Clock, Random, Tasks};
use forebay_webhooks::{Answered, Calling, Calls, NoAnswer};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// A webhook that has nothing against anything, and keeps the first who asks waiting.
#[derive(Default)]
struct Slow {
    asked: AtomicUsize,
    arrived: Notify,
    goes_on: Notify,
}

impl Calls for Slow {
    fn call(
        &self,
        calling: Calling,
    ) -> Pin<Box<dyn Future<Output = Result<Answered, NoAnswer>> + Send + '_>> {
        Box::pin(async move {
            let mut review: Value = serde_json::from_slice(&calling.parts.concat()).expect("a review");
            if self.asked.fetch_add(1, Ordering::SeqCst) == 0 {
                self.arrived.notify_one();
                self.goes_on.notified().await;
            }
            review["response"] = json!({"uid": review["request"]["uid"], "allowed": true});
            review.as_object_mut().expect("a review").remove("request");
            Ok(Answered {
                code: 200,
                content_type: "application/json".into(),
                body: Bytes::from(review.to_string()),
            })
        })
    }
}

struct World {
    registry: Registry,
    slow: Arc<Slow>,
    _tasks: Tasks,
}

impl World {
    /// With a service of one port, and a quota of so many node ports.
    async fn new(node_ports: &str) -> World {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let slow = Arc::new(Slow::default());
        let config = Config { webhooks: slow.clone(), ..Config::default() };
        let tasks = Tasks::new();
        let registry = Registry::new(config, engine, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        let world = World { registry, slow, _tasks: tasks };

        let hard = json!({"services.nodeports": node_ports});
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard},
        });
        world.create("@v1/resourcequotas/default", quota).await;
        let status = json!({"status": {"hard": hard, "used": {"services.nodeports": "0"}}});
        world.merge("@v1/resourcequotas/default/q/status", status).await.expect("counted");
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports(1)},
        });
        world.create("@v1/services/default", service).await;
        let hook = json!({
            "name": "w.example.com", "clientConfig": {"url": "https://127.0.0.1:1/w"},
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["services"]},
            ],
        });
        let hooks = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "w"}, "webhooks": [hook],
        });
        world.create("admissionregistration.k8s.io@v1/validatingwebhookconfigurations", hooks).await;
        world
    }

    fn target(&self, path: &str) -> Target {
        let mut parts = path.split('/').map(String::from);
        let gv = parts.next().expect("group@version");
        let (group, version) = gv.split_once('@').expect("group@version");
        let resource = parts.next().expect("a resource");
        let served = self.registry.catalog().resource(group, version, &resource).expect("served").clone();
        let namespace = if served.namespaced { parts.next() } else { None };
        let name = parts.next();
        Target { subresource: parts.next(), ..Target::of_server(served, namespace, name) }
    }

    async fn create(&self, path: &str, body: Value) {
        let body = Body::Json(body.to_string().into());
        let created = self.registry.create(&self.target(path), &body, &CreateOptions::default()).await;
        created.map(drop).unwrap_or_else(|status| panic!("{path}: {}", status.message));
    }

    async fn merge(&self, path: &str, body: Value) -> Result<Value, Status> {
        let (target, body) = (self.target(path), body.to_string());
        let options = PatchOptions::default();
        self.registry.patch(&target, PatchKind::Merge, body.as_bytes(), &options).await.map(object)
    }

    async fn get(&self, path: &str) -> Value {
        let target = self.target(path);
        let found = self.registry.get(&target, "").await.expect("there");
        target.served.to_value(&found).expect("a value")
    }

    /// One makes it a service with node ports. Before that is there, somebody else gives it a hundred ports,
    /// which cost nothing as it is. What the first is told.
    async fn race(&self) -> Result<Value, Status> {
        let first = self.merge("@v1/services/default/s", json!({"spec": {"type": "NodePort"}}));
        let second = async {
            self.slow.arrived.notified().await;
            let ports = json!({"spec": {"ports": ports(100)}});
            let said = self.merge("@v1/services/default/s", ports).await;
            self.slow.goes_on.notify_one();
            said.map(drop).expect("it takes no node port");
        };
        let (first, ()) = tokio::join!(first, second);
        assert_eq!(self.slow.asked.load(Ordering::SeqCst), 3, "the first takes another round");
        first
    }

    async fn used(&self) -> Value {
        self.get("@v1/resourcequotas/default/q").await["status"]["used"]["services.nodeports"].clone()
    }
}

fn ports(count: usize) -> Value {
    (0..count).map(|at| json!({"name": format!("p{at}"), "port": 1 + at})).collect()
}

fn object(answer: Answer) -> Value {
    serde_json::from_slice(&answer.outcome.json()).expect("an answer is JSON")
}

#[tokio::test]
async fn what_another_writer_adds_between_two_rounds_is_held_against_the_quota() {
    let world = World::new("5").await;
    let refused = world.race().await.expect_err("there are five");
    assert_eq!(refused.reason, Reason::Forbidden);
    assert_eq!(
        refused.message,
        "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=99, used: services.nodeports=1, limited: services.nodeports=5"
    );
    let stored = world.get("@v1/services/default/s").await;
    assert_eq!(stored["spec"]["type"], "ClusterIP");
    assert_eq!(stored["spec"]["ports"].as_array().map(Vec::len), Some(100), "the other write stands");
}

#[tokio::test]
async fn what_two_rounds_need_is_counted_once() {
    let world = World::new("100").await;
    let written = world.race().await.expect("there are as many");
    assert_eq!(written["spec"]["ports"].as_array().map(Vec::len), Some(100));
    assert_eq!(written["spec"]["type"], "NodePort");
    assert_eq!(world.used().await, "100", "and not one more for the first round");
}

/// The most that a pod of so many bare containers holds while it is created.
async fn peak(world: &World, name: &str, containers: usize) -> usize {
    struct Plenty;

    impl Ledger for Plenty {
        fn try_take(&mut self, _: usize) -> bool {
            true
        }
    }

    let containers: Vec<Value> =
        (0..containers).map(|at| json!({"name": format!("c{at}"), "image": "i"})).collect();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers},
    });
    let target = Target { lease: Lease::new(Plenty, 0), ..world.target("@v1/pods/default") };
    let body = Body::Json(pod.to_string().into());
    world.registry.create(&target, &body, &CreateOptions::default()).await.map(drop).expect("created");
    target.lease.peak()
}

#[tokio::test]
async fn what_waits_for_a_quota_is_charged_to_its_request() {
    let world = World::new("1").await;
    let alone = peak(&world, "alone", 2_000).await;
    let hard = json!({"pods": "5"});
    let status = json!({"status": {"hard": hard, "used": {"pods": "0"}}});
    world.merge("@v1/resourcequotas/default/q", json!({"spec": {"hard": hard}})).await.expect("other limits");
    world.merge("@v1/resourcequotas/default/q/status", status).await.expect("counted");
    let waiting = peak(&world, "waits", 2_000).await;
    // Before it waits, a request holds more than its tree for a moment.
    assert!(waiting > alone + 2_000 * 32, "{waiting} and {alone} without a quota");
}
