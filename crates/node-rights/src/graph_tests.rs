//! The graph, held against a reading of all pods and volumes for each question.

use std::collections::BTreeMap;

use forebay_rt::Random;
use serde_json::{Value, json};

use super::*;

const NODES: [&str; 3] = ["a", "b", "c"];
const NAMESPACES: [&str; 2] = ["m", "n"];
const NAMES: [&str; 4] = ["w", "x", "y", "z"];

/// What is stored.
#[derive(Default)]
struct Model {
    pods: BTreeMap<(String, String), Value>,
    volumes: BTreeMap<String, Value>,
}

fn one<'t>(random: &Random, of: &[&'t str]) -> &'t str {
    of[random.below(of.len() as u64) as usize]
}

fn pod(random: &Random, name: &str) -> Value {
    let mut spec = json!({ "serviceAccountName": one(random, &NAMES), "containers": [] });
    if random.below(5) > 0 {
        spec["nodeName"] = one(random, &NODES).into();
    }
    let volumes = (0..random.below(4)).map(|at| {
        let named = one(random, &NAMES);
        let mut volume = match random.below(3) {
            0 => json!({ "secret": { "secretName": named } }),
            1 => json!({ "configMap": { "name": named } }),
            _ => json!({ "persistentVolumeClaim": { "claimName": named } }),
        };
        volume["name"] = format!("v{at}").into();
        volume
    });
    spec["volumes"] = volumes.collect();
    json!({ "metadata": { "name": name }, "spec": spec })
}

fn volume(random: &Random) -> Value {
    let reference = || json!({ "namespace": one(random, &NAMESPACES), "name": one(random, &NAMES) });
    match random.below(4) {
        0 => json!({ "spec": {} }),
        _ => json!({ "spec": { "claimRef": reference(), "csi": { "nodeStageSecretRef": reference() } } }),
    }
}

impl Model {
    fn names(&self, node: &str, namespace: &str, of: Related, name: &str) -> bool {
        let on_node = |((pod_namespace, _), pod): &(&(String, String), &Value)| {
            pod_namespace == namespace && pod["spec"]["nodeName"] == node
        };
        self.pods.iter().filter(on_node).any(|(_, pod)| {
            let spec = &pod["spec"];
            let (place, account) = match of {
                Related::Claim => ("/persistentVolumeClaim/claimName", false),
                Related::ConfigMap => ("/configMap/name", false),
                Related::Secret => ("/secret/secretName", false),
                Related::ServiceAccount => ("", spec["serviceAccountName"] == name),
                Related::ResourceClaim => return false,
            };
            let mut volumes = spec["volumes"].as_array().into_iter().flatten();
            account
                || (!place.is_empty()
                    && volumes.any(|volume| volume.pointer(place).is_some_and(|it| it == name)))
        })
    }

    fn has_volume(&self, node: &str, volume: &Value) -> bool {
        let claim = &volume["spec"]["claimRef"];
        claim.is_object()
            && self.names(
                node,
                claim["namespace"].as_str().unwrap_or(""),
                Related::Claim,
                claim["name"].as_str().unwrap_or(""),
            )
    }

    fn leads_to(&self, node: &str, of: Related, namespace: &str, name: &str) -> bool {
        let secret = json!({ "namespace": namespace, "name": name });
        let through_volume = self.volumes.values().any(|volume| {
            volume["spec"]["csi"]["nodeStageSecretRef"] == secret && self.has_volume(node, volume)
        });
        self.names(node, namespace, of, name) || (of == Related::Secret && through_volume)
    }
}

fn apply(random: &Random, model: &mut Model, graph: &mut NodeGraph) {
    let (namespace, name) = (one(random, &NAMESPACES), one(random, &NAMES));
    let at = (namespace.to_owned(), name.to_owned());
    match random.below(6) {
        0..3 => {
            let pod = pod(random, name);
            let links = PodLinks::read(pod.to_string().as_bytes()).expect("a pod");
            graph.put_pod(namespace, name, links.as_ref());
            model.pods.insert(at, pod);
        }
        3 => {
            graph.remove_pod(namespace, name);
            model.pods.remove(&at);
        }
        4 => {
            let volume = volume(random);
            let links = VolumeLinks::read(volume.to_string().as_bytes()).expect("a volume");
            graph.put_volume(name, links.as_ref());
            model.volumes.insert(name.to_owned(), volume);
        }
        _ => {
            graph.remove_volume(name);
            model.volumes.remove(name);
        }
    }
}

#[test]
fn an_object_leads_to_a_node_as_a_reading_of_everything_has_it() {
    for seed in 0..30 {
        let random = Random::seeded(seed);
        let (mut model, mut graph) = (Model::default(), NodeGraph::default());
        for step in 0..60 {
            apply(&random, &mut model, &mut graph);
            for node in NODES {
                for name in NAMES {
                    let volume = model.volumes.get(name).is_some_and(|volume| model.has_volume(node, volume));
                    assert_eq!(graph.has_volume(node, name), volume, "seed {seed} step {step} {node} {name}");
                    for namespace in NAMESPACES {
                        let all =
                            [Related::Claim, Related::ConfigMap, Related::Secret, Related::ServiceAccount];
                        for of in all {
                            let want = model.leads_to(node, of, namespace, name);
                            let got = graph.leads_to(node, of, namespace, name);
                            assert_eq!(got, want, "seed {seed} step {step} {node} {of:?} {namespace}/{name}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_is_kept_of_what_is_gone() {
    let random = Random::seeded(7);
    let (mut model, mut graph) = (Model::default(), NodeGraph::default());
    for _ in 0..500 {
        apply(&random, &mut model, &mut graph);
    }
    for name in NAMES {
        graph.remove_volume(name);
        NAMESPACES.iter().for_each(|namespace| {
            graph.remove_pod(namespace, name);
        });
    }
    graph.put_attachment("t", Some("a"));
    graph.put_attachment("t", None);
    graph.put_slice("s", Some("a"));
    graph.remove_slice("s");
    assert_eq!(graph.sizes(), [0; 5]);
}

#[test]
fn a_pod_that_names_what_it_named_changes_nothing() {
    let mut graph = NodeGraph::default();
    let spec = json!({ "nodeName": "a", "serviceAccountName": "s" });
    let read = |spec: &Value| {
        let pod = json!({ "metadata": { "name": "p" }, "spec": spec }).to_string();
        PodLinks::read(pod.as_bytes()).expect("a pod")
    };
    assert!(graph.put_pod("n", "p", read(&spec).as_ref()));
    assert!(!graph.put_pod("n", "p", read(&spec).as_ref()));
    assert!(graph.put_pod("n", "p", read(&json!({ "nodeName": "b", "serviceAccountName": "s" })).as_ref()));
    assert!(!graph.has_pod("a", "n", "p") && graph.has_pod("b", "n", "p"));
    assert!(graph.put_pod("n", "p", None) && !graph.put_pod("n", "p", None));
}

/// 20,000 pods on 500 nodes, as a Deployment's are: each names its account, two secrets and two config maps.
fn large() -> NodeGraph {
    let mut graph = NodeGraph::default();
    for at in 0..20_000 {
        let namespace = format!("namespace-{}", at / 10 % 100);
        let node = format!("node-{}.example.com", at * 7 % 500);
        let pod = json!({
            "metadata": { "name": format!("deployment-{}-7d4b9c6f5-{at:05}", at / 10) },
            "spec": {
                "nodeName": node, "serviceAccountName": format!("account-{}", at / 10),
                "containers": [{ "name": "c", "envFrom": [{ "secretRef": { "name": format!("env-{}", at / 10) } }] }],
                "volumes": [
                    { "name": "a", "secret": { "secretName": format!("secret-{at}") } },
                    { "name": "b", "configMap": { "name": format!("config-{}", at / 10) } },
                    { "name": "c", "projected": { "sources": [{ "configMap": { "name": "kube-root-ca.crt" } }] } },
                ],
            },
        });
        let links = PodLinks::read(pod.to_string().as_bytes()).expect("a pod");
        graph.put_pod(&namespace, pod["metadata"]["name"].as_str().expect("a name"), links.as_ref());
    }
    graph
}

/// What 20,000 pods take: the bound is linear in what they name.
#[test]
fn twenty_thousand_pods_take_no_more_than_a_kilobyte_each() {
    let mut kept = None;
    let cost = allocation_counter::measure(|| kept = Some(large()));
    let graph = kept.expect("made");
    let bytes = cost.bytes_current;
    println!("{bytes} bytes for {:?}", graph.sizes());
    assert!(bytes > 0 && bytes < 20_000 * 1024, "{bytes}");
}

#[test]
fn a_look_allocates_nothing() {
    let graph = large();
    let mut found = 0;
    let cost = allocation_counter::measure(|| {
        for (at, node) in ["node-0.example.com", "node-7.example.com"].iter().cycle().take(1_000).enumerate()
        {
            found += usize::from(graph.leads_to(node, Related::ConfigMap, "namespace-0", "kube-root-ca.crt"));
            found += usize::from(graph.leads_to(node, Related::Secret, "namespace-0", "secret-0"));
            found += usize::from(graph.has_volume(node, "v") || at > 1_000);
        }
    });
    assert!(found > 0);
    assert_eq!(cost.count_total, 0);
}
