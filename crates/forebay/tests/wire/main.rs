//! A watch on the wire: slow readers, clients that leave, the server's own leaving, WebSocket; and storms
//! that do not fit.

#[path = "../common/mod.rs"]
mod common;

mod forms;
mod group;
mod leaving;
mod raw;
mod shutdown;
mod slow;
mod storm;
mod websocket;

use std::sync::atomic::{AtomicU64, Ordering};

use common::Client;
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": data}})
}

/// Writes `count` versions of an object of about `bytes`, and says which is the newest.
async fn churn(client: &Client, collection: &str, name: &str, bytes: usize, count: usize) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut newest = 0;
    for _ in 0..count {
        let version = NEXT.fetch_add(1, Ordering::Relaxed);
        let filler = noise(version, bytes);
        let mut object = config_map(name, &format!("{version}-{filler}"));
        if collection.ends_with("secrets") {
            object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": object["data"]});
        }
        let reply = client.put(&format!("{collection}/{name}"), &object).await;
        let object = match reply.code {
            404 => client.post(collection, &object).await.expect(201),
            _ => reply.expect(200),
        };
        newest = common::rv(&object);
    }
    newest
}

/// Text that does not shrink when it is compressed, or a window would hold more of it than its bytes say.
fn noise(seed: u64, bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = seed;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(LETTERS[(state >> 58) as usize])
    };
    (0..bytes).map(|_| letter()).collect()
}

/// Watches that the server counts as open.
async fn open_watches(client: &Client) -> u64 {
    let metrics = client.get("/metrics").await;
    let lines = metrics.text().lines();
    let values = lines.filter(|line| line.starts_with("apiserver_longrunning_requests{"));
    values.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}
