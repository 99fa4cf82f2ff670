//! CustomResourceDefinitions, from the first POST to the end of the last watch.

#[path = "../common/mod.rs"]
mod common;

mod conversion;
mod definitions;
mod deletion;
mod objects;
mod rules;
mod watches;

use common::Client;
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const MERGE: &str = "application/merge-patch+json";

/// The schema of a widget.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["color"],
                "properties": {
                    "color": {"type": "string", "enum": ["red", "blue"]},
                    "replicas": {"type": "integer", "default": 1, "minimum": 0, "maximum": 9},
                    "inner": {
                        "type": "object",
                        "default": {},
                        "properties": {"mode": {"type": "string", "default": "auto", "maxLength": 5}},
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
            },
            "status": {
                "type": "object",
                "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
            },
        },
    })
}

/// The definition of widgets.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema()},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "additionalPrinterColumns": [
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                    {"name": "Mode", "type": "string", "jsonPath": ".spec.inner.mode", "priority": 1},
                ],
            }],
        },
    })
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

async fn define(client: &Client) -> Value {
    client.post(CRDS, &definition()).await.expect(201)
}

/// Creates a widget of this color.
async fn create(client: &Client, name: &str, color: &str) -> Value {
    client.post(WIDGETS, &widget(name, json!({"color": color}))).await.expect(201)
}

/// The status of a condition; empty when it is not there.
fn condition<'a>(definition: &'a Value, kind: &str) -> &'a str {
    let conditions = definition["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map_or("", |condition| common::text(condition, "/status"))
}
