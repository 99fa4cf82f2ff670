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

#[test]
fn kubectl_gets_watches_and_explains_what_the_sample_apiserver_serves() {
    let Some(peers) = needs::built_peers() else { return };
    let etcd = Cluster::start(1, Security::Plain).unwrap_or_else(|why| panic!("{why}"));
    let mut server = ControlPlane::start_as(Implementation::Forebay).unwrap_or_else(|why| panic!("{why}"));
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
    let Some(kubectl) = Session::new(&server, "aggregated") else { return };
    kubectl.file("wardle.yaml", &manifests(port));
    kubectl.run("kubectl create -f wardle.yaml");
    kubectl
        .run("kubectl wait --for=condition=Available --timeout=120s apiservice/v1alpha1.wardle.example.com");
    for name in ["one", "two"] {
        kubectl.file(&format!("{name}.yaml"), &FLUNDER.replace("NAME", name));
    }

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
