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

const FLUNDER: &str = "apiVersion: wardle.example.com/v1alpha1
kind: Flunder
metadata: {name: NAME, labels: {sample-label: 'true'}}
";

/// The sample-apiserver behind `server`, which says that it is there.
fn behind(server: &mut ControlPlane, peers: &needs::Peers, etcd: &Cluster) -> u16 {
    let [port] = ports::free().unwrap_or_else(|why| panic!("{why}"));
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
    server.start_beside("sample-apiserver", &mut sample).unwrap_or_else(|why| panic!("{why}"));
    port
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
