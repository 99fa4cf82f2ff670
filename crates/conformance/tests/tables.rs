//! Every kind's Table on both servers: columns, and the cells of a sample.
//!
//! In: the samples of `cases/`. Out: differences, held against `allowed/tables.txt`. When a sample was made
//! is not compared: neither its age nor its time.

use forebay_clients::needs;
use forebay_conformance::{Fixture, Pair, Peer, allowed, cases, diff};
use http::Method;
use serde_json::{Value, json};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// The Table of the sample alone, made comparable.
async fn table(peer: &Peer, kind: &Fixture) -> Value {
    let made = peer.send(Method::POST, &kind.collection(), Some(&kind.sample)).await;
    let made = made.unwrap_or_else(|why| panic!("{why}"));
    if made.code != 201 {
        return json!({ "refused": made.body });
    }
    let path = format!("{}?fieldSelector=metadata.name%3D{}", kind.collection(), kind.name);
    let answer = peer.send_accepting(Method::GET, &path, TABLE, None).await.expect("a table");
    let path = format!("{}/{}?gracePeriodSeconds=0", kind.collection(), kind.name);
    peer.send(Method::DELETE, &path, None).await.expect("a deletion");
    let mut table = answer.body;
    table["metadata"] = Value::Null;
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        let object = row["object"].take();
        for cell in row["cells"].as_array_mut().into_iter().flatten() {
            if *cell == object["metadata"]["creationTimestamp"] {
                *cell = "<created>".into();
            }
            if cell.as_str().is_some_and(is_age) {
                *cell = "<age>".into();
            }
        }
    }
    table
}

fn is_age(cell: &str) -> bool {
    cell.strip_suffix('s').is_some_and(|seconds| seconds.parse::<u32>().is_ok_and(|seconds| seconds < 60))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_kube_apiservers() {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    let namespace = json!({ "metadata": { "name": cases::NAMESPACE } });
    for peer in [&pair.ours, &pair.theirs] {
        peer.send(Method::POST, "/api/v1/namespaces", Some(&namespace)).await.expect("a namespace");
    }
    let mut lines = Vec::new();
    for kind in cases::all().expect("the cases") {
        let (ours, theirs) = tokio::join!(table(&pair.ours, &kind), table(&pair.theirs, &kind));
        lines.extend(diff::lines(&kind.title(), &ours, &theirs));
    }
    allowed::check(include_str!("../allowed/tables.txt"), &lines);
}
