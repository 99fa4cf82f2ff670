//! Patches of webhooks that take more than a patch may: their failure policy is asked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::hooks::Hooks;
use crate::world::{CM, World};

/// A world whose one webhook makes these operations.
async fn world(policy: &str, operations: Vec<Value>) -> World {
    let patch = STANDARD.encode(Value::from(operations).to_string());
    let hooks =
        Hooks::new(move |_| Some(json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })));
    let world = World::configured(hooks.config()).await;
    let hook = json!({
        "name": "w.example.com", "clientConfig": { "url": "https://127.0.0.1:1/w" },
        "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": policy,
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] }],
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": "c" }, "webhooks": [hook],
    });
    let path = "/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    world.create(path, configuration).await.expect("a configuration");
    world
}

fn map() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "v" } })
}

#[tokio::test(start_paused = true)]
async fn a_webhook_may_make_more_operations_than_a_client() {
    let add = |at| json!({ "op": "add", "path": format!("/data/k{at}"), "value": "v" });
    let world = world("Fail", (0..12_000).map(add).collect()).await;
    let (made, _) = world.create(CM, map()).await.expect("its patch is applied");
    assert_eq!(made["data"].as_object().map(serde_json::Map::len), Some(12_001));
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_a_webhook_that_takes_too_much_is_its_failure() {
    let list = json!({ "op": "add", "path": "/list", "value": vec![0; 20_000] });
    let front = json!({ "op": "add", "path": "/list/0", "value": 0 });
    let operations: Vec<Value> = std::iter::once(list).chain(vec![front; 5_000]).collect();
    let passed = world("Ignore", operations.clone()).await.create(CM, map()).await;
    assert!(passed.is_ok(), "it is passed over: {passed:?}");
    let refused = world("Fail", operations).await.create(CM, map()).await.expect_err("it counts");
    let why = "failed calling webhook \"w.example.com\": its patch moves too much";
    assert_eq!(refused.message, format!("Internal error occurred: {why}"));
}
