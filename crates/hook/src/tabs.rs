//! What a webhook makes of tabs, which have `hostPort` in `v1` and `host` and `port` in `v2`.
//!
//! In: a ConversionReview, and how it is answered. Out: the `response`. Never: an answer that depends on
//! anything else.

use serde_json::{Value, json};

/// See the module's doc. A tab whose `hostPort` is `bad` cannot be converted.
///
/// - `how`: `rightly`; `labels` adds one; what else there is is a fault.
pub fn converted(review: &Value, how: &str) -> Value {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut made = Vec::new();
    for object in objects {
        if object["spec"]["hostPort"] == "bad" {
            let message = format!("{} has a bad hostPort", object["metadata"]["name"]);
            return answer(review, &[], json!({ "status": "Failed", "message": message }));
        }
        let mut tab = tab(object, to);
        match how {
            "labels" => tab["metadata"]["labels"]["converted"] = to.replace('/', "-").into(),
            "rename" => tab["metadata"]["name"] = "other".into(),
            "namespace" => tab["metadata"]["namespace"] = "other".into(),
            "uid" => tab["metadata"]["uid"] = "other".into(),
            "kind" => tab["kind"] = "Other".into(),
            "version" => tab["apiVersion"] = "example.com/v9".into(),
            "bare" => drop(tab.as_object_mut().and_then(|tab| tab.remove("metadata"))),
            "number" => tab["metadata"]["labels"] = json!({ "a": 1 }),
            "label" => tab["metadata"]["labels"] = json!({ "a": "-" }),
            "metadata" => tab["metadata"]["finalizers"] = json!(["example.com/x"]),
            "large" => tab["spec"]["host"] = "x".repeat(100 << 20).into(),
            _ => {}
        }
        made.push(tab);
    }
    match how {
        "fewer" => drop(made.pop()),
        "more" => made.push(json!({})),
        "refuse" => return answer(review, &[], json!({ "status": "Failed", "message": "not today" })),
        "silent" => return answer(review, &[], json!({ "status": "Failed" })),
        _ => {}
    }
    let mut response = answer(review, &made, json!({ "status": "Success" }));
    if how == "other" {
        response["uid"] = "other".into();
    }
    response
}

fn answer(review: &Value, made: &[Value], result: Value) -> Value {
    json!({ "uid": review["request"]["uid"], "convertedObjects": made, "result": result })
}

/// `object` in a version. What is in none of them stays as it is.
fn tab(object: &Value, to: &str) -> Value {
    let mut tab = object.clone();
    tab["apiVersion"] = to.into();
    let Some(spec) = tab["spec"].as_object_mut() else { return tab };
    if to.ends_with("/v1") {
        let mut text = |name: &str| spec.remove(name).and_then(|part| part.as_str().map(String::from));
        if let (Some(host), Some(port)) = (text("host"), text("port")) {
            spec.insert("hostPort".into(), format!("{host}:{port}").into());
        }
    } else if let Some(Value::String(both)) = spec.remove("hostPort") {
        let (host, port) = both.split_once(':').unwrap_or((&both, ""));
        spec.insert("host".into(), host.into());
        spec.insert("port".into(), port.into());
    }
    tab
}

/// The definition of tabs, stored in `v1`, converted by a webhook at `url` that `authority` vouches for.
pub fn definition(url: &str, authority: &str) -> Value {
    let version = |name: &str, properties: Value| {
        let mut spec = json!({
            "replicas": { "type": "integer" }, "mode": { "type": "string", "default": "auto" },
        });
        spec.as_object_mut().expect("members").extend(properties.as_object().cloned().unwrap_or_default());
        let status = json!({ "type": "object", "properties": {
            "replicas": { "type": "integer" }, "phase": { "type": "string" } } });
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": spec }, "status": status } } },
            "subresources": { "status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" } },
        })
    };
    let mut v2 = version("v2", json!({ "host": { "type": "string" }, "port": { "type": "string" } }));
    v2["selectableFields"] = json!([{ "jsonPath": ".spec.host" }]);
    v2["additionalPrinterColumns"] = json!([{ "name": "Host", "type": "string", "jsonPath": ".spec.host" }]);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "tabs.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "tabs", "singular": "tab", "kind": "Tab" },
            "versions": [version("v1", json!({ "hostPort": { "type": "string" } })), v2],
            "conversion": { "strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": { "url": url, "caBundle": authority } } },
        },
    })
}
