//! Which versions of custom resources webhooks are asked in, without a network.

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
use forebay_webhooks::{Answered, Calling, Calls, NoAnswer};
use serde_json::{Value, json};

/// Notes what is asked, and allows it.
#[derive(Default)]
struct Noted(Mutex<Vec<Value>>);

impl Calls for Noted {
    fn call(
        &self,
        calling: Calling,
    ) -> Pin<Box<dyn Future<Output = Result<Answered, NoAnswer>> + Send + '_>> {
        let review: Value = serde_json::from_slice(&calling.parts.concat()).expect("a review");
        let uid = &review["request"]["uid"];
        let body = json!({
            "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
            "response": { "uid": uid, "allowed": true },
        });
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

#[tokio::test]
async fn a_webhook_for_a_version_that_is_not_served_is_asked_in_it_about_the_others() {
    let (clock, _hand) = Clock::manual(1_700_000_000_000);
    let options = Options { clock: clock.clone(), ..Options::default() };
    let engine = Engine::open_in_memory(options).expect("opens");
    let (noted, tasks) = (Arc::<Noted>::default(), Tasks::new());
    let config = Config { webhooks: noted.clone(), ..Config::default() };
    let registry = Registry::new(config, engine, clock, Random::seeded(7), tasks.clone());
    registry.start().await.expect("starts");
    let create = async |group: &str, plural: &str, namespace: Option<&str>, body: Value| {
        let catalog = registry.catalog();
        let served = catalog.resource(group, "v1", plural).expect("served").clone();
        let target = Target::of_server(served, namespace.map(String::from), None);
        let body = Body::Json(body.to_string().into());
        registry.create(&target, &body, &CreateOptions::default()).await.expect("created");
    };
    create("apiextensions.k8s.io", "customresourcedefinitions", None, definition()).await;
    assert!(registry.catalog().resource("example.com", "v2", "things").is_none());
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "c" },
        "webhooks": [hook("taken.for", "Equivalent"), hook("exactly", "Exact")],
    });
    let configurations = "validatingwebhookconfigurations";
    create("admissionregistration.k8s.io", configurations, None, configuration).await;
    let thing = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "t" }, "spec": { "a": "b" },
    });
    create("example.com", "things", Some("default"), thing).await;
    let asked = std::mem::take(&mut *noted.0.lock().expect("reviews"));
    let told: Vec<_> = asked
        .iter()
        .map(|request| {
            let version = |of: &str| request[of]["version"].as_str().unwrap_or_default().to_owned();
            (version("kind"), version("requestKind"), request["object"]["apiVersion"].clone())
        })
        .collect();
    assert_eq!(told, [("v2".to_owned(), "v1".to_owned(), json!("example.com/v2"))]);
    assert!(tasks.stop(Duration::from_secs(60)).await, "tasks end");
}
