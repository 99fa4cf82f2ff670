//! Webhooks on the embedded engine in memory, without a network: who carries a call is the test's.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use forebay_api::{Answer, Body};
use forebay_apimachinery::json::weight;
use forebay_apimachinery::lease::Ledger;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, UpdateOptions};
use forebay_apimachinery::{Caller, Lease, Reason, Status};
use forebay_catalog::{AuditAnnotations, RequestContext, Target, Turn};
use forebay_embedded::{Engine, Options};
use forebay_registry::{Config, Registry, ServiceRouting, ServicesConfig};
use forebay_rt::{Clock, Duration, Random, Tasks};
use forebay_spans::{AttributeValue, Collector, RequestSpan, Tracer, TracingConfiguration};
use forebay_webhooks::{Answered, Calling, Calls, NoAnswer};
use serde_json::{Value, json};

/// What a webhook answers to a review.
type Answers = dyn Fn(&Calling, &Value) -> Result<Value, NoAnswer> + Send + Sync;

/// Carries calls to a function.
struct Carried {
    answers: Box<Answers>,
    // Where each call went, and the bytes of its review.
    calls: Mutex<Vec<(Option<Box<str>>, usize)>>,
}

impl Calls for Carried {
    fn call(
        &self,
        calling: Calling,
    ) -> Pin<Box<dyn Future<Output = Result<Answered, NoAnswer>> + Send + '_>> {
        let review = calling.parts.concat();
        self.calls.lock().expect("calls").push((calling.address.clone(), review.len()));
        let review: Value = serde_json::from_slice(&review).expect("a review");
        let answered = (self.answers)(&calling, &review).map(|mut response| {
            response["uid"] = review["request"]["uid"].clone();
            let body =
                json!({ "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response });
            Answered { code: 200, content_type: "application/json".into(), body: Bytes::from(body.to_string()) }
        });
        Box::pin(std::future::ready(answered))
    }
}

struct World {
    registry: Registry,
    carried: Arc<Carried>,
    clock: Clock,
    tasks: Tasks,
}

impl World {
    async fn new(
        answers: impl Fn(&Calling, &Value) -> Result<Value, NoAnswer> + Send + Sync + 'static,
    ) -> World {
        World::routed(ServiceRouting::ClusterAddress, answers).await
    }

    async fn routed(
        routing: ServiceRouting,
        answers: impl Fn(&Calling, &Value) -> Result<Value, NoAnswer> + Send + Sync + 'static,
    ) -> World {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let engine =
            Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
        let carried = Arc::new(Carried { answers: Box::new(answers), calls: Mutex::default() });
        let services = ServicesConfig { routing, ..ServicesConfig::default() };
        let config = Config { webhooks: carried.clone(), services, ..Config::default() };
        let tasks = Tasks::new();
        let registry = Registry::new(config, engine, clock.clone(), Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, carried, clock, tasks }
    }

    fn target(&self, path: &str) -> Target {
        let mut parts = path.split('/');
        let mut next = || parts.next().filter(|part| !part.is_empty()).map(String::from);
        let gv = next().expect("group@version");
        let (group, version) = gv.split_once('@').expect("group@version");
        let resource = next().expect("a resource");
        let served = self.registry.catalog().resource(group, version, &resource).expect("served").clone();
        let namespace = if served.namespaced { next() } else { None };
        Target { name: next(), ..Target::of_server(served, namespace, None) }
    }

    async fn create(&self, path: &str, body: Value) -> Result<Value, Status> {
        self.create_as(&self.target(path), body).await
    }

    async fn create_as(&self, target: &Target, body: Value) -> Result<Value, Status> {
        let body = Body::Json(body.to_string().into());
        self.registry.create(target, &body, &CreateOptions::default()).await.map(object)
    }

    /// A configuration of webhooks, each with what it has beside what all have.
    async fn configure(&self, sort: &str, hooks: impl IntoIterator<Item = Value>) {
        let hooks: Vec<Value> = hooks.into_iter().map(hook).collect();
        let path = format!("admissionregistration.k8s.io@v1/{}webhookconfigurations", sort.to_lowercase());
        let kind = format!("{sort}WebhookConfiguration");
        let body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": sort.to_lowercase() }, "webhooks": hooks,
        });
        self.create(&path, body).await.expect("a configuration");
    }

    fn calls(&self) -> Vec<(Option<Box<str>>, usize)> {
        std::mem::take(&mut *self.carried.calls.lock().expect("calls"))
    }

    /// Where it went.
    fn asked(&self) -> Vec<String> {
        self.calls().into_iter().filter_map(|(at, _)| at.map(String::from)).collect()
    }

    async fn end(self) {
        assert!(self.tasks.stop(Duration::from_secs(60)).await, "tasks end");
    }
}

fn hook(own: Value) -> Value {
    let mut hook = json!({
        "name": "w.example.com", "clientConfig": { "url": "https://127.0.0.1:1/w" },
        "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["configmaps", "events"] }],
    });
    for (name, value) in own.as_object().into_iter().flatten() {
        hook[name] = value.clone();
    }
    hook
}

fn service(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": spec })
}

fn ports() -> Value {
    json!([{ "name": "https", "port": 443, "targetPort": 8443 }, { "name": "other", "port": 80 }])
}

/// Endpoints of the service `s`, the first of which is not ready.
fn slice(name: &str, family: &str, [first, second, third]: [&str; 3]) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family,
        "metadata": { "name": name, "labels": { "kubernetes.io/service-name": "s" } },
        "ports": [{ "name": "other", "port": 80 }, { "name": "https", "port": 8443 }],
        "endpoints": [
            { "addresses": [first], "conditions": { "ready": false } },
            { "addresses": [second] },
            { "addresses": [third], "conditions": { "ready": true } },
        ],
    })
}

fn object(answer: Answer) -> Value {
    serde_json::from_slice(&answer.outcome.json()).expect("an answer is JSON")
}

fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": "v" } })
}

fn allowed() -> Result<Value, NoAnswer> {
    Ok(json!({ "allowed": true }))
}

const CONFIG_MAPS: &str = "@v1/configmaps/default";
const SLICES: &str = "discovery.k8s.io@v1/endpointslices/default";

/// Has as much as is wanted.
struct Plenty;

impl Ledger for Plenty {
    fn try_take(&mut self, _: usize) -> bool {
        true
    }
}

const THINGS: &str = "example.com@v1/things/default";

/// A definition of objects with a long list, which has one owner as a whole.
fn definition() -> Value {
    let items = json!({ "type": "array", "items": { "type": "string" } });
    let spec = json!({ "type": "object", "properties": { "items": items, "note": { "type": "string" } } });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

/// An object of 3 MiB, most of it in many short values.
fn large(note: &str) -> Value {
    let items: Vec<String> = (0..230_000).map(|at| format!("item-{at:06}")).collect();
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "large" },
        "spec": { "items": items, "note": note },
    })
}

/// The most that an update of the large object holds, and what its reviews have in bytes.
async fn peak(world: &World, note: &str) -> (usize, usize) {
    let lease = Lease::new(Plenty, 0);
    let target = Target { lease, ..world.target(&format!("{THINGS}/large")) };
    let found = world.registry.get(&target, "").await.expect("there");
    let mut object = large(note);
    object["metadata"]["resourceVersion"] = found.revision().to_string().into();
    let body = Body::Json(object.to_string().into());
    world.calls();
    world.registry.update(&target, &body, &UpdateOptions::default()).await.expect("updated");
    (target.lease.peak(), world.calls().iter().map(|(_, bytes)| bytes).sum())
}

#[tokio::test]
async fn a_review_of_three_mib_is_made_of_bytes_and_charged() {
    let world = World::new(|_, review| {
        let request = &review["request"];
        assert_eq!(request["object"]["spec"]["note"], "asked");
        assert_eq!(request["oldObject"]["spec"]["note"], "alone");
        assert_eq!(request["oldObject"]["spec"]["items"], request["object"]["spec"]["items"]);
        allowed()
    })
    .await;
    world.create("apiextensions.k8s.io@v1/customresourcedefinitions", definition()).await.expect("served");
    world.create(THINGS, large("first")).await.expect("created");
    let (alone, _) = peak(&world, "alone").await;
    let rules = json!([{ "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": ["things"] }]);
    let hooks = (0..3).map(|at| json!({ "name": format!("w{at}.example.com"), "rules": rules }));
    world.configure("Validating", hooks).await;
    let (asked, reviews) = peak(&world, "asked").await;
    let (tree, text) = (weight::of(&large("asked")), large("asked").to_string().len());
    assert!(text > 3 << 20 && tree > 3 * text, "{tree} of {text}");
    assert!(reviews > 6 * text, "both objects, three times: {reviews}");
    // The texts of both, which all who are asked share, and no tree of either: it never holds more than while
    // it is judged.
    let more = asked.saturating_sub(alone);
    assert!(more < tree, "{more}: a text takes {text}, a tree {tree}");
    world.end().await;
}

#[tokio::test]
async fn a_webhook_that_says_too_much_is_passed_over_where_its_failure_policy_has_it_so() {
    /// Has no more than so many bytes.
    struct Purse(usize);

    impl Ledger for Purse {
        fn try_take(&mut self, bytes: usize) -> bool {
            let left = self.0.checked_sub(bytes);
            self.0 = left.unwrap_or(self.0);
            left.is_some()
        }
    }

    let world = World::new(|_, _| {
        let warnings: Vec<String> = (0..100_000).map(|at| at.to_string()).collect();
        Ok(json!({ "allowed": false, "warnings": warnings }))
    })
    .await;
    let create = async |name: &str, bytes| {
        let lease = Lease::new(Purse(bytes), 0);
        let target = Target { lease: lease.clone(), ..world.target(CONFIG_MAPS) };
        (world.create_as(&target, config_map(name)).await, lease.exhausted())
    };
    world.configure("Validating", [json!({ "failurePolicy": "Ignore" })]).await;
    let (refused, _) = create("a", 1 << 30).await;
    let refused = refused.expect_err("there is room for its answer");
    assert!(refused.message.contains("denied the request"), "{}", refused.message);
    let (created, exhausted) = create("b", 1 << 20).await;
    assert_eq!(created.expect("passed over")["metadata"]["name"], "b");
    assert_eq!(exhausted, None);
    world.configure("Mutating", [json!({ "failurePolicy": "Fail" })]).await;
    let (refused, _) = create("c", 1 << 20).await;
    let refused = refused.expect_err("it counts");
    assert!(refused.message.contains("failed calling webhook"), "{}", refused.message);
    world.end().await;
}

#[tokio::test]
async fn who_finds_no_room_behind_a_webhook_is_told_so_and_when_to_come_back() {
    /// There is no room for one that waits for that webhook.
    struct Behind(&'static str);

    impl Ledger for Behind {
        fn try_take(&mut self, _: usize) -> bool {
            true
        }

        fn wait_for(&mut self, whom: &Arc<str>) -> bool {
            !whom.contains(self.0)
        }
    }

    let world = World::new(|calling, _| {
        assert!(!calling.url.contains("/full"), "nobody asks it");
        allowed()
    })
    .await;
    let full = json!({ "url": "https://127.0.0.1:1/full" });
    let hooks = |policy: &str| {
        let hook = json!({ "name": "full.example.com", "failurePolicy": policy, "clientConfig": full });
        [json!({ "name": "fine.example.com" }), hook]
    };
    let create = async |name: &str| {
        let target = Target { lease: Lease::new(Behind("full"), 0), ..world.target(CONFIG_MAPS) };
        world.create_as(&target, config_map(name)).await
    };
    world.configure("Validating", hooks("Ignore")).await;
    create("a").await.expect("it is passed over");
    world.configure("Mutating", hooks("Fail")).await;
    let refused = create("b").await.expect_err("it counts");
    let why = "failed calling webhook \"full.example.com\": too many requests wait for it to answer";
    assert_eq!((refused.reason, &*refused.message), (Reason::TooManyRequests, why));
    assert!((1..=8).contains(&refused.retry_after_seconds));
    world.end().await;
}

#[tokio::test]
async fn a_service_is_asked_at_its_address_and_where_that_is_out_of_reach_at_its_endpoints() {
    let world = World::new(|calling, _| match calling.address.as_deref() {
        Some("10.0.0.9:8443") => allowed(),
        Some(address) => Err(NoAnswer::Unreached(format!("{address} is out of reach"))),
        None => Err(NoAnswer::Failed("no address".into())),
    })
    .await;
    let made =
        world.create("@v1/services/default", service("s", json!({ "ports": ports() }))).await.expect("made");
    let address = made["spec"]["clusterIP"].as_str().expect("an address").to_owned();
    world.create(SLICES, slice("s-1", "IPv4", ["10.0.0.7", "10.0.0.8", "10.0.0.9"])).await.expect("a slice");
    let client = json!({ "service": { "namespace": "default", "name": "s", "path": "/w" } });
    world.configure("Validating", [json!({ "clientConfig": client })]).await;
    world.create(CONFIG_MAPS, config_map("a")).await.expect("allowed");
    let asked = world.asked();
    assert_eq!(asked[0], format!("{address}:443"));
    assert_eq!(asked.last().map(String::as_str), Some("10.0.0.9:8443"));
    world.end().await;
}

#[tokio::test]
async fn where_services_are_routed_to_their_endpoints_each_of_them_is_asked_and_their_address_is_not() {
    let world = World::routed(ServiceRouting::Endpoints, |_, _| allowed()).await;
    let client =
        |name: &str| json!({ "clientConfig": { "service": { "namespace": "default", "name": name } } });
    for name in ["s", "nobody"] {
        let headless = service(name, json!({ "clusterIP": "None", "ports": ports() }));
        world.create("@v1/services/default", headless).await.expect("made");
    }
    world.create(SLICES, slice("s-1", "IPv6", ["fd00::7", "fd00::8", "fd00::9"])).await.expect("a slice");
    world.create(SLICES, slice("s-2", "IPv4", ["10.0.0.7", "10.0.0.8", "10.0.0.9"])).await.expect("a slice");
    world.configure("Validating", [client("s")]).await;
    for at in 0..20 {
        world.create(CONFIG_MAPS, config_map(&format!("a{at}"))).await.expect("allowed");
    }
    let asked: BTreeSet<String> = world.asked().into_iter().collect();
    assert_eq!(asked, ["10.0.0.8:8443", "10.0.0.9:8443"].map(String::from).into());
    world.configure("Mutating", [client("nobody")]).await;
    let refused = world.create(CONFIG_MAPS, config_map("a")).await.expect_err("nobody is there");
    assert!(refused.message.contains("no endpoints available for service \"nobody\""), "{}", refused.message);
    world.end().await;
}

#[tokio::test]
async fn a_service_that_cannot_be_routed_to_says_why() {
    let world = World::new(|calling, _| Err(NoAnswer::Failed(format!("{:?}", calling.address)))).await;
    let port = json!([{ "port": 8443 }]);
    for (name, spec) in [
        ("headless", json!({ "clusterIP": "None", "ports": [{ "port": 443 }] })),
        ("elsewhere", json!({ "type": "ExternalName", "externalName": "example.com" })),
        ("other-port", json!({ "ports": port })),
    ] {
        world.create("@v1/services/default", service(name, spec)).await.expect("made");
    }
    for (name, why) in [
        ("none", "service \"none\" not found"),
        ("headless", "cannot route to service with ClusterIP \"None\""),
        ("elsewhere", "Some(\"example.com:443\")"),
        ("other-port", "no service port 443 found for service \"other-port\""),
    ] {
        let client = json!({ "service": { "namespace": "default", "name": name } });
        world.configure("Mutating", [json!({ "clientConfig": client })]).await;
        let refused = world.create(CONFIG_MAPS, config_map("a")).await.expect_err("out of reach");
        assert!(refused.message.contains(why), "{name}: {}", refused.message);
        let taken_back = "admissionregistration.k8s.io@v1/mutatingwebhookconfigurations/mutating";
        let target = world.target(taken_back);
        world.registry.delete(&target, &DeleteOptions::default()).await.expect("taken back");
    }
    world.end().await;
}

#[tokio::test]
async fn an_audit_log_is_told_what_webhooks_and_policies_say() {
    let world = World::new(|calling, _| match calling.url.contains("/fails") {
        true => Err(NoAnswer::Failed("EOF".into())),
        false => Ok(json!({ "allowed": true, "auditAnnotations": { "seen": "yes" } })),
    })
    .await;
    let fails = json!({ "url": "https://127.0.0.1:1/fails" });
    let failing = json!({ "name": "f.example.com", "failurePolicy": "Ignore", "clientConfig": fails });
    world.configure("Mutating", [failing.clone(), json!({ "name": "m.example.com" })]).await;
    world.configure("Validating", [failing]).await;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "p.example.com" },
        "spec": {
            "matchConstraints": { "resourceRules": [{ "apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["*"], "resources": ["configmaps"] }] },
            "validations": [{ "expression": "true" }, { "expression": "false", "message": "never" }],
            "auditAnnotations": [{ "key": "named", "valueExpression": "'called ' + object.metadata.name" }],
        },
    });
    let at = "admissionregistration.k8s.io@v1/validatingadmissionpolicies";
    world.create(at, policy).await.expect("a policy");
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "b" },
        "spec": { "policyName": "p.example.com", "validationActions": ["Audit"] },
    });
    let at = "admissionregistration.k8s.io@v1/validatingadmissionpolicybindings";
    world.create(at, binding).await.expect("a binding");
    let audit = Arc::new(AuditAnnotations::default());
    let context = RequestContext { audit: Some(audit.clone()), ..RequestContext::default() };
    let target = Target { context, ..world.target(CONFIG_MAPS) };
    world.create_as(&target, config_map("a")).await.expect("created");
    let told: Vec<String> = audit.take().into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let mutated = |name: &str| {
        format!(r#"{{"configuration":"mutating","webhook":"{name}.example.com","mutated":false}}"#)
    };
    let failure = r#"[{"message":"never","policy":"p.example.com","binding":"b","expressionIndex":1,"validationActions":["Audit"]}]"#;
    assert_eq!(
        told,
        [
            "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0 = f.example.com".to_owned(),
            "failed-open.validating.webhook.admission.k8s.io/round_0_index_0 = f.example.com".to_owned(),
            "m.example.com/seen = yes".to_owned(),
            format!("mutation.webhook.admission.k8s.io/round_0_index_0 = {}", mutated("f")),
            format!("mutation.webhook.admission.k8s.io/round_0_index_1 = {}", mutated("m")),
            "p.example.com/named = called a".to_owned(),
            format!("validation.policy.admission.k8s.io/validation_failure = {failure}"),
        ]
    );
    let timed = audit.latencies.all().into_iter().map(|(key, _)| key.rsplit('/').next());
    let parts = ["mutating-webhook", "validating-webhook", "etcd"];
    assert_eq!(timed.collect::<Vec<_>>(), parts.map(Some));
    world.end().await;
}

#[tokio::test]
async fn a_write_leaves_its_turn_to_others_while_webhooks_are_asked_and_while_it_is_stored() {
    #[derive(Default)]
    struct Turns(Mutex<Vec<&'static str>>);

    impl Turn for Turns {
        fn pause(&self) {
            self.0.lock().expect("turns").push("pause");
        }

        fn pause_for_store(&self) {
            self.0.lock().expect("turns").push("store");
        }

        fn resume(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            self.0.lock().expect("turns").push("resume");
            Box::pin(std::future::ready(()))
        }
    }

    let world = World::new(|_, _| allowed()).await;
    let turns = Arc::new(Turns::default());
    let context = RequestContext { turn: Some(turns.clone()), ..RequestContext::default() };
    let target = Target { context, ..world.target(CONFIG_MAPS) };
    let took = || std::mem::take(&mut *turns.0.lock().expect("turns"));
    world.create_as(&target, config_map("a")).await.expect("created");
    assert_eq!(took(), ["store", "resume"], "nobody is asked");
    // What stays as it is, and what is only tried, is not written: the turn is its own all the while.
    let options = CreateOptions { dry_run: true, ..CreateOptions::default() };
    let sent = |value: Value| Body::Json(value.to_string().into());
    world.registry.create(&target, &sent(config_map("c")), &options).await.expect("tried");
    let update = async |value: Value, dry_run| {
        let named = Target { name: Some("a".into()), ..target.clone() };
        let options = UpdateOptions { dry_run, ..UpdateOptions::default() };
        world.registry.update(&named, &sent(value), &options).await.expect("updated");
    };
    update(config_map("a"), false).await;
    let mut changed = config_map("a");
    changed["data"] = json!({ "k": "w" });
    update(changed.clone(), true).await;
    assert_eq!(took(), [""; 0]);
    update(changed, false).await;
    assert_eq!(took(), ["store", "resume"]);
    world.configure("Mutating", [json!({}), json!({ "name": "x.example.com" })]).await;
    let two = (0..2).map(|at| json!({ "name": format!("v{at}.example.com") }));
    world.configure("Validating", two).await;
    world.create_as(&target, config_map("b")).await.expect("created");
    // Those that change it are asked one after the other, those that only judge at once.
    assert_eq!(took(), [["pause", "resume"].repeat(3), vec!["store", "resume"]].concat());
    world.end().await;
}

/// A webhook that is asked as `path` of a server with this address.
fn told(sort: &str) -> Value {
    json!({ "clientConfig": { "url": format!("https://127.0.0.1:1/{sort}") }, "timeoutSeconds": 10 })
}

#[tokio::test]
async fn a_webhook_is_told_how_long_its_answer_is_waited_for() {
    let urls = Arc::new(Mutex::new(Vec::new()));
    let asked = urls.clone();
    let world = World::new(move |calling, _| {
        asked.lock().expect("urls").push(calling.url.clone());
        allowed()
    })
    .await;
    world.configure("Validating", [told("v")]).await;
    for left in [None, Some(2_400), Some(60_000)] {
        let deadline = left.map(|left| world.clock.now() + Duration::from_millis(left));
        let context = RequestContext { deadline, ..RequestContext::default() };
        let target = Target { context, ..world.target(CONFIG_MAPS) };
        let name = left.map_or("none".to_owned(), |left| left.to_string());
        world.create_as(&target, config_map(&name)).await.expect("created");
    }
    let url = |seconds: &str| format!("https://127.0.0.1:1/v?timeout={seconds}");
    assert_eq!(*urls.lock().expect("urls"), [url("10s"), url("3s"), url("10s")]);
    world.end().await;
}

#[tokio::test]
async fn webhooks_hear_of_the_manager_that_is_named_and_not_of_the_program() {
    let options = Arc::new(Mutex::new(Vec::new()));
    let asked = options.clone();
    let world = World::new(move |_, review| {
        asked.lock().expect("options").push(review["request"]["options"].clone());
        allowed()
    })
    .await;
    world.configure("Mutating", [told("m")]).await;
    let caller = Some(Arc::new(Caller { name: "ann".into(), ..Caller::default() }));
    let context = RequestContext { program: "curl".into(), ..RequestContext::default() };
    let target = Target { caller, context, ..world.target(CONFIG_MAPS) };
    let made = world.create_as(&target, config_map("a")).await.expect("created");
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "curl");
    let named = CreateOptions { field_manager: "own".into(), ..CreateOptions::default() };
    let body = Body::Json(config_map("b").to_string().into());
    world.registry.create(&target, &body, &named).await.expect("created");
    let said = |own: Value| {
        let mut options = json!({ "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1" });
        options.as_object_mut().expect("members").extend(own.as_object().expect("members").clone());
        options
    };
    assert_eq!(*options.lock().expect("options"), [said(json!({})), said(json!({ "fieldManager": "own" }))]);
    world.end().await;
}

#[tokio::test]
async fn a_span_says_which_webhook_is_asked_about_what() {
    let world = World::new(|_, _| allowed()).await;
    world.configure("Validating", [told("v")]).await;
    let to = TracingConfiguration {
        collector: Collector::Tcp(String::new()),
        sampling_rate_per_million: 1_000_000,
    };
    let (tracer, mut ended) = Tracer::new(&to, world.clock.clone(), Random::seeded(7));
    let started = world.clock.now();
    let request = RequestSpan { name: "POST".into(), remote: None, is_trusted: false, started };
    let request = tracer.begin(request).expect("told of");
    let context = RequestContext { trace: request.trace(), ..RequestContext::default() };
    let target = Target { context, ..world.target(CONFIG_MAPS) };
    world.create_as(&target, config_map("a")).await.expect("created");
    let mut said = Vec::new();
    while let Ok(span) = ended.try_recv() {
        if span.name == "Call validating webhook" {
            said.extend(span.attributes.into_iter().map(|(name, value)| format!("{name}={value:?}")));
        }
    }
    let of = |name: &str, value: &str| format!("{name}={:?}", AttributeValue::from(value.to_owned()));
    assert_eq!(
        said[..5],
        [
            of("configuration", "validating"),
            of("webhook", "w.example.com"),
            of("resource", "/v1, Resource=configmaps"),
            of("subresource", ""),
            of("operation", "CREATE"),
        ]
    );
    assert!(said[5].starts_with("UID="), "{said:?}");
    world.end().await;
}
