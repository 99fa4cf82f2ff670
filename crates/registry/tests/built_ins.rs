//! Objects that are there without anybody making them, on the embedded engine in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_api::{Answer, Body};
use forebay_apimachinery::Caller;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions, Query};
use forebay_apimachinery::{Key, Lease, Reason, Status};
use forebay_backend::{Backend, BoxFuture, Expect, Layer, Op, ReadError, Txn, TxnResponse, Versioned};
use forebay_catalog::Target;
use forebay_embedded::{Engine, Options};
use forebay_reads::{As, Step};
use forebay_registry::{Config, Registry};
use forebay_rt::{Clock, Duration, Random, Tasks};
use serde_json::{Value, json};

const SCHEMAS: (&str, &str) = ("flowcontrol.apiserver.k8s.io", "flowschemas");
const SERVICES: (&str, &str) = ("apiregistration.k8s.io", "apiservices");
const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");
const REQUESTS: (&str, &str) = ("certificates.k8s.io", "certificatesigningrequests");

struct World {
    registry: Registry,
    engine: Arc<Engine>,
    tasks: Tasks,
}

impl World {
    async fn new() -> World {
        World::on(engine()).await
    }

    async fn on(engine: Arc<Engine>) -> World {
        World::behind(engine.clone(), engine).await
    }

    /// On a store whose engine it is.
    async fn behind(backend: Arc<dyn Backend>, engine: Arc<Engine>) -> World {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let tasks = Tasks::new();
        let registry = Registry::new(Config::default(), backend, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, engine, tasks }
    }

    fn target(&self, (group, resource): (&str, &str), name: Option<&str>) -> Target {
        let served = self.registry.catalog().resource(group, "v1", resource).expect("served").clone();
        Target {
            served,
            namespace: None,
            name: name.map(String::from),
            subresource: None,
            caller: None,
            lease: Lease::of_server(),
            context: forebay_catalog::RequestContext::default(),
        }
    }

    async fn create(&self, target: &Target, body: Value) -> Result<Value, Status> {
        let answer = self.registry.create(target, &Body::Value(body), &CreateOptions::default()).await?;
        Ok(object(answer))
    }

    async fn delete(&self, resource: (&str, &str), name: &str) {
        let target = self.target(resource, Some(name));
        self.registry.delete(&target, &DeleteOptions::default()).await.expect("is deleted");
    }

    /// The objects of a resource.
    async fn list(&self, resource: (&str, &str)) -> Vec<Value> {
        let options = ListOptions::from_query(&Query::parse("")).expect("options");
        let mut body =
            self.registry.list(&self.target(resource, None), &options, As::Object).await.expect("is listed");
        let mut out = Vec::new();
        while body.next_chunk(64, &mut out) {}
        let list: Value = serde_json::from_slice(&out).expect("a list is JSON");
        list["items"].as_array().expect("items").clone()
    }

    /// Waits for an event of `kind` about the object `name`.
    async fn event(&self, resource: (&str, &str), kind: &str, name: &str) -> Value {
        let query = Query::parse("watch=1&resourceVersion=0");
        let options = ListOptions::from_query(&query).expect("options");
        let target = self.target(resource, None);
        let mut body = self.registry.watch(&target, &options, As::Object, false).await.expect("starts");
        loop {
            let mut out = Vec::new();
            let Step::Frames = body.next(64, &mut out).await else { panic!("the watch of {name} ended") };
            for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let event: Value = serde_json::from_slice(line).expect("a frame is JSON");
                if event["type"] == kind && event["object"]["metadata"]["name"] == name {
                    return event["object"].clone();
                }
            }
        }
    }
}

fn engine() -> Arc<Engine> {
    let (clock, _hand) = Clock::manual(1_700_000_000_000);
    Engine::open_in_memory(Options { clock, ..Options::default() }).expect("opens")
}

fn object(answer: Answer) -> Value {
    serde_json::from_slice(&answer.outcome.json()).expect("an answer is JSON")
}

fn crd() -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{ "name": "v2", "served": true, "storage": true, "schema": schema }],
        },
    })
}

#[tokio::test]
async fn a_start_makes_what_is_missing_and_the_next_one_nothing() {
    let world = World::new().await;
    let rbac = "rbac.authorization.k8s.io";
    let rows = [
        (SCHEMAS, 11, "probes"),
        (("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"), 8, "exempt"),
        ((rbac, "clusterroles"), 69, "cluster-admin"),
        ((rbac, "clusterrolebindings"), 50, "system:basic-user"),
        ((rbac, "roles"), 7, "extension-apiserver-authentication-reader"),
        ((rbac, "rolebindings"), 7, "system::leader-locking-kube-scheduler"),
    ];
    for (resource, count, name) in rows {
        let items = world.list(resource).await;
        assert_eq!(items.len(), count, "{resource:?}");
        assert!(items.iter().any(|item| item["metadata"]["name"] == name), "{name}");
    }
    let services = world.list(SERVICES).await;
    let core = services.iter().find(|item| item["metadata"]["name"] == "v1.").expect("the core group's");
    assert_eq!(core["status"]["conditions"][0]["reason"], "Local");
    assert_eq!(core["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"], "onstart");
    let schemas = world.list(SCHEMAS).await;
    assert!(schemas.iter().all(|item| item["status"]["conditions"][0]["reason"] == "Found"));
    let World { engine, tasks, .. } = world;
    assert!(tasks.stop(Duration::from_secs(60)).await);
    let again = World::on(engine).await;
    assert_eq!(again.list(SCHEMAS).await, schemas, "they were not written again");
    assert_eq!(again.list(SERVICES).await, services, "nor were these");
}

#[tokio::test]
async fn a_crd_has_an_api_service_and_what_was_deleted_comes_back() {
    let world = World::new().await;
    world.delete(SCHEMAS, "exempt").await;
    world.create(&world.target(CRDS, None), crd()).await.expect("is created");
    let service = world.event(SERVICES, "ADDED", "v2.example.com").await;
    assert_eq!(service["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"], "true");
    assert_eq!(service["spec"]["groupPriorityMinimum"], 1000);
    world.event(SCHEMAS, "ADDED", "exempt").await;
    let gone = world.event(SERVICES, "DELETED", "v2.example.com");
    let deleted = world.delete(CRDS, "widgets.example.com");
    tokio::join!(gone, deleted);
}

#[tokio::test]
async fn an_api_service_stays_while_a_crd_says_that_its_version_is_served() {
    let world = World::new().await;
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let mut converted = crd();
    converted["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": { "url": "https://127.0.0.1/convert" }, "conversionReviewVersions": ["v1"],
        },
    });
    converted["spec"]["versions"] = json!([
        { "name": "v2", "served": true, "storage": true, "schema": schema },
        { "name": "v1", "served": true, "storage": false, "schema": schema },
        { "name": "v1beta1", "served": false, "storage": false, "schema": schema },
    ]);
    world.create(&world.target(CRDS, None), converted).await.expect("is created");
    let served = world.registry.catalog().resource("example.com", "v1", "widgets").is_some();
    assert!(served, "a webhook converts it");
    let make = async |version: &str, group: &str| {
        let service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {
                "name": format!("{version}.{group}"),
                "labels": { "kube-aggregator.kubernetes.io/automanaged": "true" },
            },
            "spec": { "group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100 },
        });
        world.create(&world.target(SERVICES, None), service).await.expect("is created");
    };
    // As a kube-apiserver beside it does. They are gone through in the order of their names.
    let made = async {
        make("v1beta1", "example.com").await;
        make("v9", "gone.io").await;
        // The cache has them now, and whoever looks for what the next definition changes finds them.
        world.list(SERVICES).await;
        let mut other = crd();
        other["metadata"]["name"] = "widgets.other.io".into();
        other["spec"]["group"] = "other.io".into();
        world.create(&world.target(CRDS, None), other).await.expect("is created");
    };
    tokio::join!(world.event(SERVICES, "DELETED", "v9.gone.io"), made);
    let left = world.list(SERVICES).await;
    let is_left = |name: &str| left.iter().any(|item| item["metadata"]["name"] == name);
    assert!(is_left("v1.example.com") && is_left("v2.example.com") && !is_left("v1beta1.example.com"));
}

#[tokio::test]
async fn a_certificate_request_says_who_asks() {
    let world = World::new().await;
    let mut target = world.target(REQUESTS, None);
    target.caller = Some(Arc::new(Caller {
        name: "ann".into(),
        groups: vec!["devs".into(), "system:authenticated".into()],
        extra: [("example.com/team".to_string(), vec!["red".to_string()])].into(),
        ..Caller::default()
    }));
    let lines = include_str!("../../strategy/src/certificates/tests/requests.txt").lines();
    let fixture = |name: &str| {
        lines.clone().filter_map(|line| line.split_once(' ')).find(|(known, _)| *known == name).expect(name).1
    };
    let request = |signer: &str, request: &str| {
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": { "name": "csr" },
            "spec": {
                "request": fixture(request), "signerName": signer, "usages": ["client auth"],
                "username": "root", "groups": ["system:masters"],
            },
        })
    };
    let made = world.create(&target, request("example.com/signer", "ecdsa")).await.expect("is created");
    assert_eq!(made["spec"]["username"], "ann");
    assert_eq!(made["spec"]["extra"], json!({"example.com/team": ["red"]}));
    assert_eq!(made["spec"]["groups"], json!(["devs", "system:authenticated"]));
    let refused = world.create(&target, request("kubernetes.io/kube-apiserver-client", "masters")).await;
    let refused = refused.expect_err("nobody becomes a master");
    assert_eq!(refused.reason, Reason::Forbidden);
    assert_eq!(
        refused.message,
        "certificatesigningrequests.certificates.k8s.io \"csr\" is forbidden: use of \
         kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
}

#[tokio::test]
async fn admin_access_to_devices_needs_a_labelled_namespace() {
    let world = World::new().await;
    let mut target = world.target(("resource.k8s.io", "resourceclaims"), None);
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": { "name": "c" },
        "spec": { "devices": { "requests": [
            { "name": "r", "exactly": { "deviceClassName": "d", "adminAccess": true } },
        ] } },
    });
    target.namespace = Some("default".into());
    let refused = world.create(&target, claim.clone()).await.expect_err("is not labelled");
    assert_eq!(
        refused.message,
        "ResourceClaim.resource.k8s.io \"c\" is invalid: spec.devices.requests[0].adminAccess: Forbidden: admin \
         access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
    );
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "admins", "labels": { "resource.kubernetes.io/admin-access": "true" } },
    });
    world.create(&world.target(("", "namespaces"), None), namespace).await.expect("is created");
    target.namespace = Some("admins".into());
    world.create(&target, claim).await.expect("is labelled");
}

/// The member that has the authorities of clients.
const CLIENT_CA: &str = "client-ca-file";

/// Several servers that start at the same time on one store.
#[tokio::test]
async fn servers_that_start_together_each_publish_their_authority() {
    let first = World::new().await;
    let second = World::on(first.engine.clone()).await;
    let mut publishing = tokio::task::JoinSet::new();
    for number in 0..8 {
        let registry = if number % 2 == 0 { first.registry.clone() } else { second.registry.clone() };
        publishing.spawn(async move {
            registry
                .publish_authentication(|published| {
                    vec![(CLIENT_CA, published(CLIENT_CA) + &number.to_string())]
                })
                .await
        });
    }
    while let Some(published) = publishing.join_next().await {
        published.expect("no panic").expect("published");
    }
    let configmaps = first.registry.catalog().resource("", "v1", "configmaps").expect("served").clone();
    let target = Target {
        served: configmaps.clone(),
        namespace: Some("kube-system".into()),
        name: Some("extension-apiserver-authentication".into()),
        subresource: None,
        caller: None,
        lease: Lease::of_server(),
        context: forebay_catalog::RequestContext::default(),
    };
    let found = first.registry.get(&target, "").await.expect("there");
    let value = configmaps.to_value(&found).expect("JSON");
    let bundle = value["data"]["client-ca-file"].as_str().expect("a bundle");
    let mut all: Vec<char> = bundle.chars().collect();
    all.sort_unstable();
    assert_eq!(all, ['0', '1', '2', '3', '4', '5', '6', '7'], "{bundle}");
}

/// A store that may stop to answer reads of single keys.
struct Silent {
    engine: Arc<Engine>,
    is_silent: AtomicBool,
}

impl Layer for Silent {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine.clone()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        match self.is_silent.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(ReadError::Unanswered { cause: "no leader".to_string() }) }),
            false => self.engine.get(key),
        }
    }
}

#[tokio::test]
async fn a_published_map_that_cannot_be_read_keeps_nobody_from_serving() {
    const BROKEN: &[u8] = b"k8s:enc:aescbc:v1:key1:xxxx";
    const AUTHORITIES: &str = "/registry/configmaps/kube-system/extension-apiserver-authentication";
    const TRACKED: &str =
        "/registry/configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking";
    let engine = engine();
    for key in [AUTHORITIES, TRACKED] {
        let op = Op::Put { value: BROKEN.into(), ttl: None };
        let done = engine.commit(Txn { key: key.into(), expect: Expect::Absent, op }).await;
        assert!(matches!(done, Ok(TxnResponse::Committed(_))), "{done:?}");
    }
    let store = Arc::new(Silent { engine: engine.clone(), is_silent: AtomicBool::new(false) });
    let world = World::behind(store.clone(), engine).await;
    let publish = || world.registry.publish_authentication(|_| vec![(CLIENT_CA, "authority".to_string())]);
    publish().await.expect("goes on without it");
    world.registry.publish_tokens_tracked().await.expect("goes on without it");
    for key in [AUTHORITIES, TRACKED] {
        let found = world.engine.get(&key.into()).await.expect("reads").expect("it stays");
        assert_eq!(found.value, BROKEN);
    }
    // While nobody can say that it cannot be read, it is not passed over.
    store.is_silent.store(true, Ordering::SeqCst);
    assert_eq!(publish().await.expect_err("no answer").reason, Reason::Timeout);
    assert_eq!(world.registry.publish_tokens_tracked().await.expect_err("no answer").reason, Reason::Timeout);
}
