//! Which versions webhooks are asked in, and what counts as a change there, without a network.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use forebay_api::Body;
use forebay_apimachinery::options::CreateOptions;
use forebay_catalog::Target;
use forebay_embedded::{Engine, Options};
use forebay_registry::{Config, Registry};
use forebay_rt::{Clock, Duration, Random, Tasks};
use forebay_webhooks::{Answered, Calling, Calls, NoAnswer, WebhookSort};
use serde_json::{Value, json};

/// `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, as an answer has it.
const LABELS: &str = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7ImEiOiJiIn19XQ==";

/// Notes what is asked, and allows it; what may change the object gives it labels.
#[derive(Default)]
struct Noted(Mutex<Vec<Value>>);

impl Calls for Noted {
    fn call(
        &self,
        calling: Calling,
    ) -> Pin<Box<dyn Future<Output = Result<Answered, NoAnswer>> + Send + '_>> {
        let review: Value = serde_json::from_slice(&calling.parts.concat()).expect("a review");
        let uid = &review["request"]["uid"];
        let mut body = json!({
            "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
            "response": { "uid": uid, "allowed": true },
        });
        if calling.sort == Some(WebhookSort::Mutating) {
            body["response"]["patchType"] = "JSONPatch".into();
            body["response"]["patch"] = LABELS.into();
        }
        self.0.lock().expect("reviews").push(review["request"].clone());
        let body = Bytes::from(body.to_string());
        Box::pin(std::future::ready(Ok(Answered { code: 200, content_type: String::new(), body })))
    }
}

/// `v1` is served and stored, `v2` is neither any more.
fn definition() -> Value {
    let version = |name: &str| {
        let properties = json!({ "spec": { "type": "object", "properties": { "a": { "type": "string" } } } });
        let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": properties } });
        json!({ "name": name, "served": name == "v1", "storage": name == "v1", "schema": schema })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" },
            "versions": [version("v1"), version("v2")],
        },
    })
}

fn hook(name: &str, policy: &str) -> Value {
    json!({
        "name": format!("{name}.example.com"), "clientConfig": { "url": "https://127.0.0.1:1/w" },
        "admissionReviewVersions": ["v1"], "sideEffects": "None", "matchPolicy": policy,
        "rules": [{ "apiGroups": ["example.com"], "apiVersions": ["v2"], "operations": ["*"],
            "resources": ["things"] }],
    })
}

struct World {
    registry: Registry,
    noted: Arc<Noted>,
    tasks: Tasks,
}

impl World {
    async fn new() -> World {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let (noted, tasks) = (Arc::<Noted>::default(), Tasks::new());
        let config = Config { webhooks: noted.clone(), ..Config::default() };
        let registry = Registry::new(config, engine, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, noted, tasks }
    }

    async fn create(&self, of: (&str, &str, &str), namespace: Option<&str>, body: Value) {
        let catalog = self.registry.catalog();
        let served = catalog.resource(of.0, of.1, of.2).expect("served").clone();
        let target = Target::of_server(served, namespace.map(String::from), None);
        let body = Body::Json(body.to_string().into());
        self.registry.create(&target, &body, &CreateOptions::default()).await.expect("created");
    }

    async fn configure(&self, sort: &str, hooks: Value) {
        let plural = format!("{}webhookconfigurations", sort.to_lowercase());
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{sort}WebhookConfiguration"),
            "metadata": { "name": "c" }, "webhooks": hooks,
        });
        self.create(("admissionregistration.k8s.io", "v1", &plural), None, configuration).await;
    }

    fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut *self.noted.0.lock().expect("reviews"))
    }

    async fn end(self) {
        assert!(self.tasks.stop(Duration::from_secs(60)).await, "tasks end");
    }
}

#[tokio::test]
async fn a_null_that_stands_for_nothing_is_no_change_and_asks_nobody_again() {
    let world = World::new().await;
    let hook = |name: &str, version: &str| {
        let mut hook = hook(name, "Equivalent");
        hook["rules"][0]["apiVersions"] = json!([version]);
        hook["reinvocationPolicy"] = "IfNeeded".into();
        hook["rules"][0]["apiGroups"] = json!(["autoscaling"]);
        hook["rules"][0]["resources"] = json!(["horizontalpodautoscalers"]);
        hook
    };
    world.configure("Mutating", json!([hook("gives.labels", "v1"), hook("gives.the.same", "v2")])).await;
    let scaler = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "h" },
        "spec": { "maxReplicas": 2, "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" } },
    });
    world.create(("autoscaling", "v1", "horizontalpodautoscalers"), Some("default"), scaler).await;
    let asked = world.asked();
    // What has none is told so, in a struct's words.
    assert_eq!(asked[1]["object"]["status"].get("currentMetrics"), Some(&Value::Null));
    assert_eq!(asked.len(), 2, "each once");
    world.end().await;
}

#[tokio::test]
async fn a_webhook_for_a_version_that_is_not_served_is_asked_in_it_about_the_others() {
    let world = World::new().await;
    let definitions = ("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    world.create(definitions, None, definition()).await;
    assert!(world.registry.catalog().resource("example.com", "v2", "things").is_none());
    let hooks = json!([hook("taken.for", "Equivalent"), hook("exactly", "Exact")]);
    world.configure("Validating", hooks).await;
    let thing = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "t" }, "spec": { "a": "b" },
    });
    world.create(("example.com", "v1", "things"), Some("default"), thing).await;
    let asked = world.asked();
    let told: Vec<_> = asked
        .iter()
        .map(|request| {
            let version = |of: &str| request[of]["version"].as_str().unwrap_or_default().to_owned();
            (version("kind"), version("requestKind"), request["object"]["apiVersion"].clone())
        })
        .collect();
    assert_eq!(told, [("v2".to_owned(), "v1".to_owned(), json!("example.com/v2"))]);
    world.end().await;
}
