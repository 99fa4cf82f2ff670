//! What a decision about a node takes with 20,000 pods on 500 nodes, and what a pod takes that comes:
//! `cargo run --release -p forebay-node-rights --example nodes`.
//!
//! In: nothing. Out: nanoseconds, of five runs. Never: a claim.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::time::Instant;

use forebay_apimachinery::{About, Attributes, Caller, ResourceAttributes, Verb};
use forebay_node_rights::{NodeGraph, NodeRuling, PodLinks, decide};
use serde_json::json;

const PODS: usize = 20_000;
const ROUNDS: usize = 200_000;

fn pod(at: usize) -> (String, String, Vec<u8>) {
    let name = format!("deployment-{}-7d4b9c6f5-{at:05}", at / 10);
    let pod = json!({
        "metadata": { "name": name, "annotations": { "example.com/text": "x".repeat(4_000) } },
        "spec": {
            "nodeName": format!("node-{}", at * 7 % 500), "serviceAccountName": format!("account-{}", at / 10),
            "containers": [{ "name": "c", "image": "i", "envFrom": [{ "secretRef": { "name": format!("env-{}", at / 10) } }] }],
            "volumes": [
                { "name": "a", "secret": { "secretName": format!("secret-{at}") } },
                { "name": "b", "configMap": { "name": format!("config-{}", at / 10) } },
                { "name": "c", "projected": { "sources": [{ "configMap": { "name": "kube-root-ca.crt" } }] } },
            ],
        },
    });
    (format!("namespace-{}", at / 10 % 100), name, pod.to_string().into_bytes())
}

fn main() {
    let pods: Vec<_> = (0..PODS).map(pod).collect();
    let mut graph = NodeGraph::default();
    let mut taken = Vec::new();
    for _ in 0..5 {
        graph = NodeGraph::default();
        let started = Instant::now();
        for (namespace, name, json) in &pods {
            let links = PodLinks::read(json).expect("a pod");
            graph.put_pod(namespace, name, links.as_ref());
        }
        taken.push(started.elapsed().as_nanos() / PODS as u128);
    }
    taken.sort_unstable();
    println!("a pod that comes: {} / {} / {} ns", taken[0], taken[2], taken[4]);
    let callers: Vec<Caller> = (0..500)
        .map(|at| Caller {
            name: format!("system:node:node-{at}"),
            groups: vec!["system:nodes".to_owned(), "system:authenticated".to_owned()],
            ..Caller::default()
        })
        .collect();
    for (what, resource, name) in [
        ("a secret of one", "secrets", "secret-700"),
        ("what all name", "configmaps", "kube-root-ca.crt"),
        ("a rule for all", "services", "x"),
    ] {
        let mut taken = Vec::new();
        let mut allowed = 0;
        for _ in 0..5 {
            let started = Instant::now();
            allowed = 0;
            for at in 0..ROUNDS {
                let of =
                    ResourceAttributes { namespace: "namespace-0", resource, name, ..Default::default() };
                let caller = &callers[at * 7 % callers.len()];
                let asked = Attributes { caller, verb: &Verb::Get, about: About::Resource(of) };
                allowed += usize::from(decide(&graph, &asked) == NodeRuling::Allowed);
            }
            taken.push(started.elapsed().as_nanos() / ROUNDS as u128);
        }
        taken.sort_unstable();
        println!("{what}: {} / {} / {} ns, {allowed} of {ROUNDS} allowed", taken[0], taken[2], taken[4]);
    }
}
