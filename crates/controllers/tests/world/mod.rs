//! A registry on the embedded engine in memory with controllers on it, for tests. Stopped and started again
//! it goes on with the same store.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;

use forebay_api::{
    Answer, Authorizer, Because, Body, Decision, Elsewhere, Eventual, ObjectsElsewhere, PatchKind, Rules,
};
use forebay_apimachinery::options::{
    CreateOptions, DeleteOptions, ListOptions, PatchOptions, PropagationPolicy, UpdateOptions,
};
use forebay_apimachinery::{Attributes, Caller, Lease, Reason, Status};
use forebay_backend::{Backend as _, Expect, Op, Txn, TxnResponse};
use forebay_catalog::Target;
use forebay_controllers::{ControllerConfig, Selection, Signing};
use forebay_embedded::{Engine, Options};
use forebay_registry::{Notice, Registry};
use forebay_rt::{Clock, Duration, ManualClock, Random, Tasks};
use serde_json::{Value, json};

/// How long a test waits for what is to happen.
const DEADLINE: Duration = Duration::from_secs(120);

pub struct World {
    pub registry: Registry,
    pub hand: ManualClock,
    engine: Arc<Engine>,
    clock: Clock,
    tasks: Tasks,
    pub authorizer: Arc<dyn Authorizer>,
    beside: Beside,
}

/// Other servers, if there are any: what they keep in namespaces, and their objects.
#[derive(Clone, Default)]
struct Beside {
    elsewhere: Option<Arc<dyn Elsewhere>>,
    objects: Option<Arc<dyn ObjectsElsewhere>>,
}

/// Nobody is refused anything.
pub struct Everything;

impl Authorizer for Everything {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        Eventual::Now(Decision::Allow(Because::Unsaid))
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}

impl World {
    /// With these controllers, in the words of `--controllers`.
    pub async fn with(controllers: &str) -> World {
        World::asking(Arc::new(Everything), controllers).await
    }

    /// The same, where `authorizer` says who may do what.
    pub async fn asking(authorizer: Arc<dyn Authorizer>, controllers: &str) -> World {
        World::beside(None, authorizer, controllers).await
    }

    /// The same beside other servers.
    pub async fn beside(
        elsewhere: Option<Arc<dyn Elsewhere>>,
        authorizer: Arc<dyn Authorizer>,
        controllers: &str,
    ) -> World {
        World::anew(authorizer, Beside { elsewhere, objects: None }, controllers).await
    }

    /// With these controllers, beside servers that keep `objects`.
    pub async fn among(objects: Arc<dyn ObjectsElsewhere>, controllers: &str) -> World {
        let beside = Beside { elsewhere: None, objects: Some(objects) };
        World::anew(Arc::new(Everything), beside, controllers).await
    }

    async fn anew(authorizer: Arc<dyn Authorizer>, beside: Beside, controllers: &str) -> World {
        let (clock, hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        World::on(engine, (clock, hand), authorizer, beside, controllers).await
    }

    async fn on(
        engine: Arc<Engine>,
        (clock, hand): (Clock, ManualClock),
        authorizer: Arc<dyn Authorizer>,
        beside: Beside,
        controllers: &str,
    ) -> World {
        let tasks = Tasks::new();
        let registry = Registry::new(
            forebay_registry::Config {
                authorizer: authorizer.clone(),
                ..forebay_registry::Config::default()
            },
            engine.clone(),
            clock.clone(),
            Random::system(),
            tasks.clone(),
        );
        registry.start().await.expect("starts");
        let config = ControllerConfig {
            selection: Selection::parse(controllers.split(',')).expect("known"),
            root_ca: Arc::new(|_| CA.to_string()),
            authorizer: authorizer.clone(),
            signing: Some(signing()),
            elsewhere: beside.elsewhere.clone(),
            objects_elsewhere: beside.objects.clone(),
        };
        forebay_controllers::start(&config, &registry, Random::system(), &tasks);
        World { registry, hand, engine, clock, tasks, authorizer, beside }
    }

    /// Drops everything but the store, and starts again with these controllers.
    pub async fn restart(self, controllers: &str) -> World {
        assert!(self.tasks.stop(Duration::from_secs(60)).await, "every task ends");
        drop(self.registry);
        let World { engine, clock, hand, authorizer, beside, .. } = self;
        World::on(engine, (clock, hand), authorizer, beside, controllers).await
    }

    /// `group@version/resource[/namespace][/name][/subresource]`.
    pub fn target(&self, path: &str) -> Target {
        let mut parts = path.split('/');
        let mut next = || parts.next().filter(|part| !part.is_empty()).map(String::from);
        let gv = next().expect("group@version");
        let (group, version) = gv.split_once('@').expect("group@version");
        let resource = next().expect("a resource");
        let catalog = self.registry.catalog();
        let served =
            catalog.resource(group, version, &resource).unwrap_or_else(|| panic!("{path} is served"));
        let namespace = if served.namespaced { next() } else { None };
        Target {
            served: served.clone(),
            namespace,
            name: next(),
            subresource: next(),
            caller: None,
            lease: Lease::of_server(),
            context: forebay_catalog::RequestContext::default(),
        }
    }

    pub async fn try_create(&self, path: &str, body: Value) -> Result<Value, Status> {
        let body = Body::Json(body.to_string().into());
        self.registry.create(&self.target(path), &body, &CreateOptions::default()).await.map(object)
    }

    pub async fn create(&self, path: &str, body: Value) -> Value {
        self.try_create(path, body).await.unwrap_or_else(|status| panic!("create {path}: {}", status.message))
    }

    pub async fn update(&self, path: &str, body: Value) -> Value {
        let body = Body::Json(body.to_string().into());
        let done = self.registry.update(&self.target(path), &body, &UpdateOptions::default()).await;
        done.map(object).unwrap_or_else(|status| panic!("update {path}: {}", status.message))
    }

    pub async fn merge(&self, path: &str, body: Value) -> Value {
        let (target, body) = (self.target(path), body.to_string());
        let done =
            self.registry.patch(&target, PatchKind::Merge, body.as_bytes(), &PatchOptions::default()).await;
        done.map(object).unwrap_or_else(|status| panic!("patch {path}: {}", status.message))
    }

    /// Puts a value into the store that no server put there.
    pub async fn put_raw(&self, key: &str, value: &'static [u8]) {
        let op = Op::Put { value: value.into(), ttl: None };
        let done = self.engine.commit(Txn { key: key.into(), expect: Expect::Absent, op }).await;
        assert!(matches!(done, Ok(TxnResponse::Committed(_))), "{key}: {done:?}");
    }

    /// Whether the store has a value there, whoever can read it.
    pub async fn has_raw(&self, key: &str) -> bool {
        self.engine.get(&key.into()).await.expect("open").is_some()
    }

    pub async fn delete(&self, path: &str, policy: Option<PropagationPolicy>) {
        let options = DeleteOptions { propagation_policy: policy, ..DeleteOptions::default() };
        let done = self.registry.delete(&self.target(path), &options).await;
        done.map(drop).unwrap_or_else(|status| panic!("delete {path}: {}", status.message));
    }

    /// Without grace.
    pub async fn delete_now(&self, path: &str) {
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        let done = self.registry.delete(&self.target(path), &options).await;
        done.map(drop).unwrap_or_else(|status| panic!("delete {path}: {}", status.message));
    }

    pub async fn find(&self, path: &str) -> Option<Value> {
        let target = self.target(path);
        match self.registry.get(&target, "").await {
            Ok(found) => Some(target.served.to_value(&found).expect("a value")),
            Err(status) if status.reason == Reason::NotFound => None,
            Err(status) => panic!("get {path}: {}", status.message),
        }
    }

    pub async fn get(&self, path: &str) -> Value {
        self.find(path).await.unwrap_or_else(|| panic!("{path} is there"))
    }

    /// Waits until `holds` of the object at `path`, or of `None` when there is none.
    pub async fn until(&self, path: &str, holds: impl Fn(Option<&Value>) -> bool) {
        let target = self.target(path);
        let all = Target { name: None, subresource: None, ..target };
        let mut informer = self.registry.informer(&all, &ListOptions::default()).expect("listens");
        let deadline = self.clock.now() + DEADLINE;
        loop {
            while let Some(notice) = informer.try_next() {
                assert!(!matches!(notice, Notice::Ended), "{path} is served");
            }
            let found = self.find(path).await;
            if holds(found.as_ref()) {
                return;
            }
            tokio::select! {
                () = informer.ready() => {}
                () = self.clock.sleep_until(deadline) => panic!("{path}: still {found:#?}"),
            }
        }
    }

    pub async fn until_gone(&self, path: &str) {
        self.until(path, |found| found.is_none()).await;
    }

    pub async fn until_there(&self, path: &str) {
        self.until(path, |found| found.is_some()).await;
    }

    /// Waits until the garbage collector has done everything that there was to do: an orphan that comes later
    /// is gone.
    pub async fn until_collected(&self) {
        let mut orphan = map("sentinel");
        orphan["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "none" }]);
        // Twice: what the first round of work has led to is done as well.
        for _ in 0..2 {
            self.create("@v1/configmaps/default", orphan.clone()).await;
            self.until_gone("@v1/configmaps/default/sentinel").await;
        }
    }

    /// Makes `example.io/v1` widgets (in namespaces) and `gears` (in none) served.
    pub async fn with_widgets(self) -> World {
        for (plural, kind, scope) in [("widgets", "Widget", "Namespaced"), ("gears", "Gear", "Cluster")] {
            let crd = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": { "name": format!("{plural}.example.io") },
                "spec": {
                    "group": "example.io", "scope": scope,
                    "names": { "plural": plural, "kind": kind, "singular": kind.to_lowercase() },
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": { "openAPIV3Schema": {
                            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        } },
                    }],
                },
            });
            self.create("apiextensions.k8s.io@v1/customresourcedefinitions", crd).await;
        }
        let mut changes = self.registry.catalog_changes();
        while self.registry.catalog().resource("example.io", "v1", "gears").is_none() {
            changes.changed().await;
        }
        self
    }
}

/// `example.io/v2` tools, in namespaces. They are stored as v1, which is not served.
pub fn tools() -> Value {
    let version = |name: &str, stored: bool| {
        json!({
            "name": name, "served": !stored, "storage": stored,
            "schema": { "openAPIV3Schema": { "type": "object" } },
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "tools.example.io" },
        "spec": {
            "group": "example.io", "scope": "Namespaced", "names": { "plural": "tools", "kind": "Tool" },
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

pub fn tool(name: &str) -> Value {
    json!({ "apiVersion": "example.io/v2", "kind": "Tool", "metadata": { "name": name } })
}

pub const CA: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

/// An authority of its own, that signs for a day at most.
fn signing() -> Signing {
    let now = jiff::Timestamp::from_second(1_700_000_000).expect("a time");
    let made = forebay_pki::in_memory(&forebay_pki::ServingNames::default(), now).expect("made");
    Signing { authority: made.signing, duration: Duration::from_secs(24 * 3_600) }
}

fn object(answer: Answer) -> Value {
    serde_json::from_slice(&answer.outcome.json()).expect("an answer is JSON")
}

pub fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

pub fn widget(name: &str) -> Value {
    json!({ "apiVersion": "example.io/v1", "kind": "Widget", "metadata": { "name": name } })
}

pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

pub fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    })
}

/// A reference to `owner`.
pub fn owned_by(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    })
}

/// The same, which the owner waits for.
pub fn blocking(owner: &Value) -> Value {
    let mut reference = owned_by(owner);
    reference["blockOwnerDeletion"] = json!(true);
    reference
}

/// `object` with these owners.
pub fn with_owners(mut object: Value, owners: &[Value]) -> Value {
    object["metadata"]["ownerReferences"] = json!(owners);
    object
}

/// `object` with this finalizer.
pub fn held(mut object: Value, finalizer: &str) -> Value {
    object["metadata"]["finalizers"] = json!([finalizer]);
    object
}
