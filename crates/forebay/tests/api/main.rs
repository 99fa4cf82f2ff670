//! The API as a client that follows the documentation meets it.

#[path = "../common/mod.rs"]
mod common;

mod aggregation;
mod apply;
mod at_once;
mod custom;
mod expiry;
mod forms;
mod hanging;
mod kubelet;
mod lists;
mod minimal;
mod policies;
mod protobuf;
mod refusals;
mod strict;
mod visited;
mod watches;
mod webhooks;
mod writes;

use common::Client;
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": data}})
}

async fn create(client: &Client, name: &str) -> Value {
    client.post(CONFIG_MAPS, &config_map(name, "v")).await.expect(201)
}
