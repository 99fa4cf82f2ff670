//! Discovery and OpenAPI of both servers, document by document.
//!
//! In: every path that kube-apiserver's own index names. Out: differences, held against
//! `allowed/discovery.txt` and `allowed/openapi.txt`. Prose is not compared: ours has none.

use forebay_clients::needs;
use forebay_conformance::{Pair, Peer, allowed, diff};
use http::Method;
use serde_json::Value;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn document(peer: &Peer, path: &str, accept: &str) -> Value {
    let answer = peer.send_accepting(Method::GET, path, accept, None).await;
    let mut answer = answer.unwrap_or_else(|why| panic!("{why}"));
    unhash(&mut answer.body);
    match answer.code {
        200 => answer.body,
        code => Value::from(format!("{code}")),
    }
}

/// Takes the hash off the names of shared parameters: it covers their descriptions.
fn unhash(value: &mut Value) {
    const SUFFIX_BYTES: usize = "-HC2hJt-J".len();
    let bare = |name: &str| {
        let end = name.len().checked_sub(SUFFIX_BYTES).filter(|end| name.as_bytes()[*end] == b'-');
        end.map(|end| name[..end].to_owned())
    };
    match value {
        Value::Object(members) => {
            if let Some(reference) = members.get_mut("$ref") {
                let short =
                    reference.as_str().filter(|text| text.starts_with("#/parameters/")).and_then(bare);
                *reference = short.map_or_else(|| reference.take(), Value::from);
            }
            if let Some(Value::Object(parameters)) = members.get_mut("parameters") {
                let named = std::mem::take(parameters).into_iter();
                parameters.extend(named.map(|(name, value)| (bare(&name).unwrap_or(name), value)));
            }
            members.values_mut().for_each(unhash);
        }
        Value::Array(items) => items.iter_mut().for_each(unhash),
        _ => {}
    }
}

async fn compared(pair: &Pair, path: &str, accept: &str, lines: &mut Vec<String>) {
    let (ours, theirs) =
        tokio::join!(document(&pair.ours, path, accept), document(&pair.theirs, path, accept));
    lines.extend(diff::lines(path, &ours, &theirs));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discovery_is_kube_apiservers() {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    let mut lines = Vec::new();
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    let groups = document(&pair.theirs, "/apis", "application/json").await;
    for group in groups["groups"].as_array().expect("groups") {
        paths.push(format!("/apis/{}", group["name"].as_str().expect("a name")));
        for version in group["versions"].as_array().expect("versions") {
            paths.push(format!("/apis/{}", version["groupVersion"].as_str().expect("a version")));
        }
    }
    assert!(paths.len() > 40, "{paths:?}");
    for path in &paths {
        compared(&pair, path, "application/json", &mut lines).await;
    }
    for path in ["/api", "/apis"] {
        compared(&pair, path, AGGREGATED, &mut lines).await;
    }
    allowed::check(include_str!("../allowed/discovery.txt"), &lines);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_is_kube_apiservers() {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    let mut lines = Vec::new();
    let index = |document: &Value| -> Vec<String> {
        document["paths"].as_object().map(|paths| paths.keys().cloned().collect()).unwrap_or_default()
    };
    let (ours, theirs) = tokio::join!(
        document(&pair.ours, "/openapi/v3", "application/json"),
        document(&pair.theirs, "/openapi/v3", "application/json")
    );
    let (ours, theirs) = (index(&ours), index(&theirs));
    assert!(theirs.len() > 40, "{theirs:?}");
    lines.extend(diff::lines("/openapi/v3", &ours.into(), &theirs.clone().into()));
    for path in theirs {
        compared(&pair, &format!("/openapi/v3/{path}"), "application/json", &mut lines).await;
    }
    compared(&pair, "/openapi/v2", "application/json", &mut lines).await;
    allowed::check(include_str!("../allowed/openapi.txt"), &lines);
}
