//! The real sample-apiserver behind an APIService, as `kubectl` meets it.
//!
//! In: the peers, built; a server of ours, an etcd for the other one. Out: what people read of a resource
//! that another server serves. Never: a word of that server's own beyond what the test is about.

use std::process::Command;

use forebay_clients::etcd::{Cluster, Security};
use forebay_clients::{ControlPlane, Implementation, Session, needs, ports};

/// The namespace, the service and the APIService that lead to it.
fn manifests(port: u16) -> String {
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: wardle}}
---
apiVersion: v1
kind: Service
metadata: {{name: api, namespace: wardle}}
spec: {{type: ExternalName, externalName: localhost}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1alpha1.wardle.example.com}}
spec:
  insecureSkipTLSVerify: true
  group: wardle.example.com
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {{name: api, namespace: wardle, port: {port}}}
  version: v1alpha1
"
    )
}

const SAMPLE: &str = "sample-apiserver";

const FLUNDER: &str = "apiVersion: wardle.example.com/v1alpha1
kind: Flunder
metadata: {name: NAME, labels: {sample-label: 'true'}}
";

/// The sample-apiserver behind `server`, which says that it is there.
fn behind(server: &mut ControlPlane, peers: &needs::Peers, etcd: &Cluster) -> u16 {
    let [port] = ports::free().unwrap_or_else(|why| panic!("{why}"));
    start_sample(server, peers, etcd, port);
    port
}

fn start_sample(server: &mut ControlPlane, peers: &needs::Peers, etcd: &Cluster, port: u16) {
    let kubeconfig = server.kubeconfig().display().to_string();
    let mut sample = Command::new(&peers.sample_apiserver);
    sample.args(etcd.flags()).args([
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--cert-dir=sample-serving".to_owned(),
    ]);
    server.start_beside(SAMPLE, &mut sample).unwrap_or_else(|why| panic!("{why}"));
}

/// A session in which it is there, with a manifest of each flunder.
fn begun<'s>(server: &'s ControlPlane, port: u16) -> Option<Session<'s>> {
    let kubectl = Session::new(server, "aggregated")?;
    kubectl.file("wardle.yaml", &manifests(port));
    kubectl.run("kubectl create -f wardle.yaml");
    kubectl
        .run("kubectl wait --for=condition=Available --timeout=120s apiservice/v1alpha1.wardle.example.com");
    // What it serves is asked of it once it is there, and told a moment later.
    for (asked, told) in [
        ("kubectl api-resources --api-group=wardle.example.com", "flunders"),
        ("kubectl get --raw /openapi/v2", "/apis/wardle.example.com/v1alpha1/"),
    ] {
        kubectl.run(&format!("until {asked} | grep -q {told}; do sleep 0.2; done"));
    }
    for name in ["one", "two"] {
        kubectl.file(&format!("{name}.yaml"), &FLUNDER.replace("NAME", name));
    }
    Some(kubectl)
}

/// What people do with a resource, and what they are told of it.
const SESSION: &str = "
    kubectl api-resources --api-group=wardle.example.com
    kubectl create -f one.yaml
    kubectl apply -f two.yaml
    kubectl apply --server-side -f two.yaml --force-conflicts
    kubectl get flunders
    kubectl get flunders -o name --selector sample-label=true
    kubectl get flunders one -o jsonpath={.kind}{.metadata.labels}
    kubectl get flunders none
    kubectl create -f one.yaml
    kubectl get --raw /apis/wardle.example.com/v1alpha1
    kubectl get --raw /apis/wardle.example.com
    kubectl get apiservice v1alpha1.wardle.example.com -o jsonpath={.status.conditions[*].reason}
    kubectl explain flunders.spec.flunderReference
    kubectl explain flunders.metadata.name
    kubectl patch flunder two --type=merge -p '{\"metadata\":{\"labels\":{\"a\":\"b\"}}}'
    kubectl get flunders -l a=b -o name
    kubectl auth can-i create flunders.wardle.example.com
    kubectl get flunders --as=nobody
    kubectl delete flunder one
    kubectl delete flunders --all
    kubectl get flunders
";

#[test]
fn what_the_sample_apiserver_serves_is_the_same_behind_kube_apiserver() {
    let Some(peers) = needs::built_peers() else { return };
    let [of_rival, of_sample, of_other] =
        [(); 3].map(|()| Cluster::start(1, Security::Plain).unwrap_or_else(|why| panic!("{why}")));
    let mut ours = ControlPlane::start_as(Implementation::Forebay).unwrap_or_else(|why| panic!("{why}"));
    let mut theirs =
        ControlPlane::start_rival_before_others(&of_rival, ours.dir()).unwrap_or_else(|why| panic!("{why}"));
    let ports = [behind(&mut ours, peers, &of_sample), behind(&mut theirs, peers, &of_other)];
    let told = |server: &ControlPlane, port: u16| -> Option<(String, serde_json::Value)> {
        let kubectl = begun(server, port)?;
        let transcript = kubectl.transcript(SESSION);
        let document = kubectl.run("kubectl get --raw /openapi/v2");
        Some((transcript, serde_json::from_str(&document).expect("a document")))
    };
    let (Some((ours, own)), Some((theirs, other))) = (told(&ours, ports[0]), told(&theirs, ports[1])) else {
        return;
    };
    assert_eq!(ours, theirs);
    // What is merged of it: its paths, and by which names they find their definitions.
    let of_wardle = |document: &serde_json::Value| -> Vec<String> {
        let paths = document["paths"].as_object().expect("paths");
        let paths = paths.iter().filter(|(path, _)| path.starts_with("/apis/wardle.example.com/v1alpha1/"));
        // What is said of fields is in words of our own here, so that definitions of one name are not alike.
        let item = |item: &serde_json::Value| item.to_string().replace("_v2\"", "\"");
        let mut all: Vec<String> = paths.map(|(path, of)| format!("{path} {}", item(of))).collect();
        all.sort();
        all
    };
    let (own, other) = (of_wardle(&own), of_wardle(&other));
    assert!(!other.is_empty());
    assert_eq!(own, other);
}

#[test]
fn kubectl_gets_watches_and_explains_what_the_sample_apiserver_serves() {
    let Some(peers) = needs::built_peers() else { return };
    let etcd = Cluster::start(1, Security::Plain).unwrap_or_else(|why| panic!("{why}"));
    let mut server = ControlPlane::start_as(Implementation::Forebay).unwrap_or_else(|why| panic!("{why}"));
    let port = behind(&mut server, peers, &etcd);
    let Some(kubectl) = begun(&server, port) else { return };

    let resources = kubectl.run("kubectl api-resources --api-group=wardle.example.com");
    assert!(
        resources.contains("flunders") && resources.contains("wardle.example.com/v1alpha1"),
        "{resources}"
    );
    assert_eq!(kubectl.run("kubectl create -f one.yaml"), "flunder.wardle.example.com/one created\n");
    let mut watch = kubectl.follow("kubectl get flunders --watch --no-headers -o name");
    assert_eq!(watch.lines(1), "flunder.wardle.example.com/one\n");
    kubectl.run("kubectl apply -f two.yaml");
    assert_eq!(watch.lines(1), "flunder.wardle.example.com/two\n");
    let table = kubectl.run("kubectl get flunders");
    let names: Vec<&str> = table.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["NAME", "one", "two"], "{table}");
    let explained = kubectl.run("kubectl explain flunders.spec");
    assert!(explained.contains("KIND:       Flunder") && explained.contains("reference"), "{explained}");
    kubectl.run("kubectl patch flunder two --type=merge -p '{\"metadata\":{\"labels\":{\"a\":\"b\"}}}'");
    assert_eq!(kubectl.run("kubectl get flunders -l a=b -o name"), "flunder.wardle.example.com/two\n");
    kubectl.run("kubectl delete flunders --all");
}

/// An object that is owned by another one.
fn owned(of: (&str, &str), name: &str, owner: (&str, &str, &str), uid: &str) -> String {
    let ((api_version, kind), (owner_version, owner_kind, owner)) = (of, owner);
    format!(
        "apiVersion: {api_version}
kind: {kind}
metadata:
  name: {name}
  labels: {{sample-label: 'true'}}
  ownerReferences:
  - {{apiVersion: {owner_version}, kind: {owner_kind}, name: {owner}, uid: {uid}}}
"
    )
}

const MAP: (&str, &str) = ("v1", "ConfigMap");
const FLUNDERS: &str = "wardle.example.com/v1alpha1";

/// Creates one that is owned by another one, which is there.
fn create_owned(kubectl: &Session<'_>, of: (&str, &str), name: &str, owner: (&str, &str, &str)) {
    let uid = kubectl.run(&format!("kubectl get {} {} -o jsonpath={{.metadata.uid}}", owner.1, owner.2));
    kubectl.file("owned.yaml", &owned(of, name, owner, &uid));
    kubectl.run("kubectl create -f owned.yaml");
}

/// Waits until a ConfigMap is gone whose owner never was: whatever there was to collect is.
fn collected(kubectl: &Session<'_>) {
    kubectl.file("sentinel.yaml", &owned(MAP, "sentinel", ("v1", "ConfigMap", "none"), "none"));
    kubectl.run("kubectl create -f sentinel.yaml");
    kubectl.run("until ! kubectl get configmap sentinel; do sleep 0.2; done");
}

/// Owners and dependents on both sides of an aggregated server, whoever collects.
fn owners_on_both_sides(server: &mut ControlPlane, peers: &needs::Peers) {
    let etcd = Cluster::start(1, Security::Plain).unwrap_or_else(|why| panic!("{why}"));
    let port = behind(server, peers, &etcd);
    let flunder = |name| (FLUNDERS, "Flunder", name);
    {
        let Some(kubectl) = begun(server, port) else { return };
        kubectl.run("kubectl create configmap owner");
        create_owned(&kubectl, (FLUNDERS, "Flunder"), "child", ("v1", "ConfigMap", "owner"));
        kubectl.run("kubectl create -f one.yaml");
        create_owned(&kubectl, MAP, "child", flunder("one"));
        kubectl.run("kubectl create -f two.yaml");
        create_owned(&kubectl, MAP, "stays", flunder("two"));
        collected(&kubectl);
        kubectl.run("kubectl get configmap child stays && kubectl get flunder child");

        kubectl.run("kubectl delete configmap owner");
        kubectl.run("until ! kubectl get flunder child; do sleep 0.2; done");
        kubectl.run("kubectl delete flunder one");
        kubectl.run("until ! kubectl get configmap child; do sleep 0.2; done");
        kubectl.run("kubectl get configmap stays");
    }
    server.kill_beside(SAMPLE).unwrap_or_else(|why| panic!("{why}"));
    {
        let Some(kubectl) = Session::open(server, "away") else { return };
        kubectl.run("kubectl config set-context --current --namespace=aggregated");
        let is_away = "kubectl wait --for=condition=Available=False --timeout=120s";
        kubectl.run(&format!("{is_away} apiservice/v1alpha1.wardle.example.com"));
        // One that is looked at while nobody can say whether its owner is there.
        let none = "00000000-0000-0000-0000-000000000000";
        kubectl.file("late.yaml", &owned(MAP, "late", flunder("none"), none));
        kubectl.run("kubectl create -f late.yaml");
        for _ in 0..3 {
            collected(&kubectl);
        }
        kubectl.run("kubectl get configmap stays late");
    }
    start_sample(server, peers, &etcd, port);
    let Some(kubectl) = Session::open(server, "back") else { return };
    kubectl.run("kubectl config set-context --current --namespace=aggregated");
    // The one whose owner never was goes once its server says so; the other's is there.
    kubectl.run("until ! kubectl get configmap late; do sleep 0.2; done");
    kubectl.run("kubectl get configmap stays && kubectl get flunder two");
    kubectl.run("kubectl delete flunder two --cascade=foreground");
    kubectl.run("until ! kubectl get configmap stays; do sleep 0.2; done");
}

#[test]
fn owners_and_dependents_are_collected_on_both_sides_of_the_sample_apiserver() {
    let Some(peers) = needs::built_peers() else { return };
    let mut server = ControlPlane::start_told(vec!["--controllers=garbage-collector-controller".to_owned()]);
    let server = server.as_mut().unwrap_or_else(|why| panic!("{why}"));
    owners_on_both_sides(server, peers);
}
