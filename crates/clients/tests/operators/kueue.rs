//! Kueue: jobs are admitted by quota; its definitions are converted by its webhook.

use forebay_clients::{Session, ports};
use serde_json::{Value, json};

use super::{Operator, create, server, shown};

#[test]
fn kueue_admits_a_job_by_quota_and_the_next_once_that_is_gone() {
    let Some(operator) = Operator::asked("kueue") else { return };
    let mut server = server();
    let [port, health] = ports::free().unwrap_or_else(|why| panic!("{why}"));
    let kubeconfig = {
        let Some(kubectl) = Session::new(&server, "install") else { return };
        let mut all = shown(&kubectl, &format!("-k {}", operator.source("config/default")));
        // What is not to run, or not served.
        all.retain(|one| one["kind"] != "Deployment" && one["kind"] != "APIService");
        all.iter_mut().for_each(|one| put_here(one, port));
        create(&kubectl, "all.json", all);
        operator.kubeconfig(&kubectl, "kueue-system", "kueue-controller-manager")
    };
    let home = server.dir().join("kueue-certificates").display().to_string();
    std::fs::create_dir(&home).unwrap_or_else(|why| panic!("{home}: {why}"));
    let config = format!(
        "apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {{healthProbeBindAddress: '127.0.0.1:{health}'}}
metrics: {{bindAddress: '0'}}
webhook: {{host: 127.0.0.1, port: {port}, certDir: {home}}}
leaderElection: {{leaderElect: false}}
integrations: {{frameworks: [batch/job]}}
"
    );
    let file = server.dir().join("kueue.yaml");
    std::fs::write(&file, config).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let mut command = operator.command();
    command.arg(format!("--config={}", file.display())).arg("--feature-gates=VisibilityOnDemand=false");
    command.env("KUBECONFIG", kubeconfig);
    operator.start(&mut server, &mut command);
    let Some(kubectl) = Session::new(&server, "work") else { return };
    // As a kubelet mounts it.
    for name in ["ca.crt", "tls.crt", "tls.key"] {
        let data = format!("--for=jsonpath={{.data.{}}}", name.replace('.', "\\\\."));
        let secret = "secret/kueue-webhook-server-cert -n kueue-system";
        kubectl.run(&format!("kubectl wait {data} --timeout=120s {secret}"));
        let data = data.replace("--for=", "");
        kubectl.run(&format!("kubectl get {secret} -o {data} | base64 -d > {home}/{name}"));
    }
    for kind in ["clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"] {
        let known = "--for=jsonpath={.spec.conversion.webhook.clientConfig.caBundle}";
        kubectl.run(&format!("kubectl wait {known} --timeout=120s crd/{kind}.kueue.x-k8s.io"));
    }
    operator.saw("it has signed for its webhooks, and told its definitions");
    kubectl.file("queues.yaml", QUEUES);
    // Its webhooks are asked about these, so that it has to be there.
    kubectl.run("until kubectl apply -f queues.yaml; do sleep 1; done");
    kubectl.run("kubectl wait --for=condition=Active --timeout=120s clusterqueue/all");
    let older =
        kubectl.run("kubectl get clusterqueues.v1beta1.kueue.x-k8s.io all -o 'jsonpath={.apiVersion}'");
    operator.saw(&format!("its ClusterQueue is active, and is read in {older} as well"));
    for name in ["one", "two"] {
        kubectl.file("job.yaml", &JOB.replace("NAME", name));
        kubectl.run("kubectl create -f job.yaml");
    }
    kubectl.run("kubectl wait --for=jsonpath={.spec.suspend}=false --timeout=120s job/one");
    kubectl.run("until kubectl get workloads -o 'jsonpath={.items[*].status.conditions[*].reason}' | grep -q Pending; do sleep 1; done");
    let waits = kubectl.run("kubectl get job two -o 'jsonpath={.spec.suspend}'");
    assert_eq!(waits.trim(), "true");
    operator.saw("of two jobs that want all there is one is admitted, and the other waits");
    kubectl.run("kubectl delete job one");
    kubectl.run("kubectl wait --for=jsonpath={.spec.suspend}=false --timeout=120s job/two");
    operator.saw("the first is deleted, and the second is admitted");
    drop(kubectl);
    operator.still_runs(&mut server);
}

/// Has what is asked behind its webhooks' Service asked on this machine.
fn put_here(one: &mut Value, port: u16) {
    if one["metadata"]["name"] == "kueue-webhook-service" {
        one["spec"] = json!({ "type": "ExternalName", "externalName": "localhost" });
    }
    if let Some(service) = one.pointer_mut("/spec/conversion/webhook/clientConfig/service") {
        service["port"] = json!(port);
    }
    for hook in one.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        hook["clientConfig"]["service"]["port"] = json!(port);
    }
}

const QUEUES: &str = "apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: usual}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: usual, resources: [{name: cpu, nominalQuota: 1}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: own}
spec: {clusterQueue: all}
";

const JOB: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: NAME, labels: {kueue.x-k8s.io/queue-name: own}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
";
