//! What a server says of itself: versions, resources, schemas, health.

use expect_test::expect;
use forebay_clients::Kind;

use super::{fixtures, session};

/// The groups that this server serves, of those that kube-apiserver has.
const GROUPS: &[&str] = &[
    "''",
    "apps",
    "batch",
    "rbac.authorization.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "discovery.k8s.io",
    "apiextensions.k8s.io",
];

#[test]
fn api_resources_of_each_group() {
    let Some(kubectl) = session("resources") else { return };
    let lines: String =
        GROUPS.iter().map(|group| format!("kubectl api-resources --api-group={group} -o wide\n")).collect();
    kubectl.check(&lines, expect![[""]]);
}

#[test]
fn api_versions_of_the_served_groups() {
    let Some(kubectl) = session("versions") else { return };
    kubectl.check(
        "
        kubectl api-versions | grep -E '^(v1|(apps|batch|rbac.authorization.k8s.io|coordination.k8s.io|events.k8s.io|discovery.k8s.io|apiextensions.k8s.io)/.*)$'
        kubectl get --raw /api
        kubectl get --raw /apis/apps
        kubectl get --raw /apis/coordination.k8s.io/v1
        ",
        expect![[""]],
    );
}

#[test]
fn version_and_cluster_info() {
    let Some(kubectl) = session("version") else { return };
    let said = kubectl.run("kubectl version -o json");
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["serverVersion"]["major"], "1");
    assert_eq!(said["serverVersion"]["minor"], "36");
    assert!(said["serverVersion"]["gitVersion"].as_str().is_some_and(|v| v.starts_with("v1.36.")), "{said}");
    kubectl.check("kubectl cluster-info | sed 's/\\x1b\\[[0-9;]*m//g' | head -1", expect![[""]]);
}

#[test]
fn health_is_told_in_parts() {
    let Some(kubectl) = session("health") else { return };
    kubectl.check(
        "
        kubectl get --raw /readyz
        kubectl get --raw /livez
        kubectl get --raw /healthz
        kubectl get --raw /livez/ping
        kubectl get --raw '/readyz?verbose' | grep -e ping -e passed
        kubectl get --raw '/readyz?verbose&exclude=ping' | grep -e ping -e passed
        kubectl get --raw /readyz/nothing
        ",
        expect![[""]],
    );
}

#[test]
fn explain_lists_built_in_fields() {
    let Some(kubectl) = session("explain") else { return };
    // Descriptions are the prose of Kubernetes; the fields, their types and marks are the API.
    let fields = "grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\\s<'";
    let lines: String = [
        "configmap",
        "pod.spec.containers",
        "pod.spec.containers.resources",
        "deployment.spec",
        "deployment.spec.strategy --recursive",
        "pod.metadata",
        "lease.spec",
        "crd.spec.names",
        "secret.type",
    ]
    .iter()
    .map(|path| format!("kubectl explain {path} | {fields}\n"))
    .collect();
    kubectl.check(&lines, expect![[""]]);
    kubectl.check(
        "
        kubectl explain pod.spec.nothing
        kubectl explain nothings
        ",
        expect![[""]],
    );
}

#[test]
fn explain_tells_of_custom_fields() {
    let Some(kubectl) = session("explaincr") else { return };
    kubectl.file("crd.yaml", &fixtures::crd("explain.example.com"));
    kubectl.run("kubectl create -f crd.yaml");
    kubectl.run("kubectl wait crd/gadgets.explain.example.com --for=condition=Established");
    // The document of a new group appears a moment after its resources.
    let explained = forebay_clients::wait::until("explain", std::time::Duration::from_secs(30), || {
        let said = kubectl.transcript("kubectl explain gadgets.explain.example.com.spec");
        if said.contains("FIELDS") { Ok(said) } else { Err(said) }
    });
    expect![[""]].assert_eq(&explained.unwrap_or_else(|why| panic!("{why}")));
    kubectl.check(
        "
        kubectl explain gadgets.explain.example.com.spec.color
        kubectl explain gadgets.explain.example.com --recursive | grep -A3 conditions
        kubectl explain gadgets --api-version=explain.example.com/v1beta1 | head -4
        ",
        expect![[""]],
    );
}

#[test]
fn the_first_line_says_how_to_use_it() {
    let Some(kubectl) = session("stdout") else { return };
    if kubectl.server.kind() == Kind::KubeApiserver {
        return;
    }
    let stdout = kubectl.server.stdout();
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    assert!(stdout.contains("kubectl --kubeconfig ") && stdout.contains("data/admin.kubeconfig"), "{stdout}");
}
