//! prometheus-operator: a Prometheus becomes a StatefulSet with its configuration.

use forebay_clients::Session;

use super::{Operator, server};

#[test]
fn prometheus_operator_makes_a_stateful_set_and_its_configuration() {
    let Some(operator) = Operator::asked("prometheus-operator") else { return };
    let mut server = server();
    let kubeconfig = {
        let defined = operator.define(&server, "monitoring", "example/prometheus-operator-crd");
        let Some(kubectl) = defined else { return };
        let rights = format!("-f {}", operator.source("example/rbac/prometheus-operator"));
        operator.account(&kubectl, &rights, "default", "prometheus-operator")
    };
    let mut command = operator.command();
    command.env("KUBECONFIG", kubeconfig);
    command.args(["--web.listen-address=127.0.0.1:0", "--log-level=debug"]);
    operator.start(&mut server, &mut command);
    let Some(kubectl) = Session::new(&server, "work") else { return };
    kubectl.file("prometheus.yaml", PROMETHEUS);
    kubectl.run("kubectl create -f prometheus.yaml");
    kubectl.run("kubectl wait --for=create --timeout=120s statefulset/prometheus-main");
    let replicas = kubectl.run("kubectl get statefulset prometheus-main -o 'jsonpath={.spec.replicas}'");
    assert_eq!(replicas.trim(), "2");
    kubectl.run("kubectl wait --for=create --timeout=120s secret/prometheus-main");
    operator.saw("a Prometheus has a StatefulSet of two replicas, and a Secret with its configuration");
    kubectl.run("kubectl patch prometheus main --type=merge -p '{\"spec\":{\"replicas\":3}}'");
    kubectl.run("kubectl wait --for=jsonpath={.spec.replicas}=3 --timeout=120s statefulset/prometheus-main");
    operator.saw("three replicas are asked for, and the StatefulSet has three");
    kubectl.run("kubectl wait --for=condition=Reconciled --timeout=120s prometheus/main");
    // What is scaled of a Prometheus is its shards.
    let scaled = kubectl.run("kubectl scale prometheus main --replicas=2");
    kubectl.run("kubectl wait --for=create --timeout=120s statefulset/prometheus-main-shard-1");
    operator.saw(&format!("kubectl scale says: {}, and it has a StatefulSet more", scaled.trim()));
    kubectl.run("kubectl delete prometheus main");
    let both = "statefulset/prometheus-main statefulset/prometheus-main-shard-1";
    kubectl.run(&format!("kubectl wait --for=delete --timeout=120s {both}"));
    operator.saw("it is deleted, and its StatefulSets go with it");
    drop(kubectl);
    operator.still_runs(&mut server);
}

const PROMETHEUS: &str = "apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web, labels: {team: a}}
spec: {selector: {matchLabels: {app: web}}, endpoints: [{port: web}]}
---
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: main}
spec:
  serviceAccountName: prometheus
  replicas: 2
  serviceMonitorSelector: {matchLabels: {team: a}}
";
