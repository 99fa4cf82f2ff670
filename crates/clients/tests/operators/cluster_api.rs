//! cluster-api's core: its definitions are converted by its webhook, stored objects move to the newer
//! version, and a MachineDeployment becomes machines of an infrastructure that is only definitions here.

use forebay_clients::{Session, ports};

use super::{Operator, Webhook, server};

#[test]
fn cluster_api_converts_its_kinds_and_makes_machines() {
    let Some(operator) = Operator::asked("cluster-api") else { return };
    let mut server = server();
    let webhook = Webhook::new(&server);
    let [health] = ports::free().unwrap_or_else(|why| panic!("{why}"));
    let kubeconfig = {
        let Some(kubectl) = operator.define(&server, "system", "core/config/crd/bases") else { return };
        kubectl.file("infrastructure.yaml", &infrastructure());
        kubectl.run("kubectl create -f infrastructure.yaml");
        kubectl.run("kubectl wait --for=condition=Established --timeout=60s crd --all");
        // One is stored as an earlier release would have.
        kubectl.run(&format!("kubectl patch crd {CLUSTERS} --type=json -p '{}'", stored_as(0)));
        kubectl.file("early.yaml", &CLUSTER.replace("NAME", "early"));
        kubectl.run("kubectl create -f early.yaml");
        kubectl.run(&format!("kubectl patch crd {CLUSTERS} --type=json -p '{}'", stored_as(1)));
        webhook.converts(&kubectl, &DEFINITIONS);
        let rights = format!("-k {}", operator.source("core/config/rbac"));
        operator.account(&kubectl, &rights, "system", "manager")
    };
    let mut command = operator.command();
    command.arg(format!("--webhook-port={}", webhook.port));
    command.arg(format!("--webhook-cert-dir={}", server.dir().display()));
    command.arg(format!("--health-addr=127.0.0.1:{health}")).arg("--diagnostics-address=0");
    command.env("KUBECONFIG", kubeconfig).env("POD_NAMESPACE", "system");
    operator.start(&mut server, &mut command);
    let Some(kubectl) = Session::new(&server, "work") else { return };
    let stored = format!("kubectl get crd {CLUSTERS} -o 'jsonpath={{.status.storedVersions[*]}}'");
    kubectl.run(&format!("until test \"$({stored})\" = v1beta2; do sleep 1; done"));
    let early = kubectl.run(
        "kubectl get cluster early -n system -o 'jsonpath={.apiVersion} {.spec.infrastructureRef.apiGroup}'",
    );
    operator.saw(&format!("an object that was stored as v1beta1 was stored anew, and is {early}"));
    let manifests = format!("-f {}", operator.source("core/config/webhook/manifests.yaml"));
    webhook.create(&kubectl, &manifests, |_| true);
    kubectl.file("none.yaml", NONE);
    let refused = kubectl.transcript("kubectl create -f none.yaml");
    let why = "The Cluster \"none\" is invalid: spec: Forbidden: one of spec.controlPlaneRef";
    assert!(refused.contains(why), "{refused}");
    operator.saw(refused.lines().find(|line| line.contains("Forbidden")).unwrap_or_default());
    kubectl.file("cluster.yaml", &CLUSTER.replace("NAME", "all"));
    kubectl.file("machines.yaml", MACHINES);
    kubectl.run("kubectl create -f cluster.yaml -f machines.yaml");
    kubectl.run(
        "kubectl wait --for=jsonpath={.metadata.ownerReferences[0].name}=all --timeout=120s testcluster/all",
    );
    kubectl.run("kubectl patch testcluster all --subresource=status --type=merge -p '{\"status\":{\"initialization\":{\"provisioned\":true}}}'");
    kubectl.run("kubectl wait --for=jsonpath={.status.initialization.infrastructureProvisioned}=true --timeout=120s cluster/all");
    kubectl.run("kubectl wait --for=jsonpath={.status.infrastructureReady}=true --timeout=120s clusters.v1beta1.cluster.x-k8s.io/all");
    operator
        .saw("a cluster was made as v1beta1, defaulted and judged as v1beta2, and is provisioned in both");
    let surge = kubectl.run(
        "kubectl get machinedeployment nodes -o 'jsonpath={.spec.rollout.strategy.rollingUpdate.maxSurge}'",
    );
    let older = kubectl.run("kubectl get machinedeployments.v1beta1.cluster.x-k8s.io nodes -o 'jsonpath={.spec.strategy.rollingUpdate.maxSurge}'");
    assert_eq!((surge.trim(), older.trim()), ("1", "1"));
    kubectl.run("until test $(kubectl get testmachines -o name | wc -l) = 2; do sleep 1; done");
    operator.saw("a MachineDeployment has two machines of the infrastructure");
    kubectl.run("kubectl scale machinedeployment nodes --replicas=1");
    kubectl.run("until test $(kubectl get testmachines -o name | wc -l) = 1; do sleep 1; done");
    operator.saw("it is scaled, and has one");
    kubectl.run("kubectl delete cluster all --timeout=120s");
    assert_eq!(kubectl.run("kubectl get clusters,machines,testmachines,testclusters -o name"), "");
    operator.saw("the cluster is deleted, and all of it goes with it");
    drop(kubectl);
    operator.still_runs(&mut server);
}

const CLUSTERS: &str = "clusters.cluster.x-k8s.io";

/// Its definitions that have more than one version.
const DEFINITIONS: [&str; 13] = [
    "clusterclasses.cluster.x-k8s.io",
    CLUSTERS,
    "machinedeployments.cluster.x-k8s.io",
    "machinedrainrules.cluster.x-k8s.io",
    "machinehealthchecks.cluster.x-k8s.io",
    "machinepools.cluster.x-k8s.io",
    "machines.cluster.x-k8s.io",
    "machinesets.cluster.x-k8s.io",
    "clusterresourcesets.addons.cluster.x-k8s.io",
    "clusterresourcesetbindings.addons.cluster.x-k8s.io",
    "ipaddresses.ipam.cluster.x-k8s.io",
    "ipaddressclaims.ipam.cluster.x-k8s.io",
    "extensionconfigs.runtime.cluster.x-k8s.io",
];

/// A patch by which the version of that index is the one that is stored.
fn stored_as(index: usize) -> String {
    let one = |of: usize| {
        format!("{{\"op\":\"replace\",\"path\":\"/spec/versions/{of}/storage\",\"value\":{}}}", of == index)
    };
    format!("[{},{}]", one(0), one(1))
}

/// The definitions of a provider, by the names and labels that cluster-api finds them by.
fn infrastructure() -> String {
    ["TestCluster", "TestMachine", "TestMachineTemplate"]
        .map(|kind| {
            let singular = kind.to_lowercase();
            format!(
                "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {singular}s.infrastructure.cluster.x-k8s.io
  labels: {{cluster.x-k8s.io/v1beta2: v1beta2}}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {{kind: {kind}, plural: {singular}s, singular: {singular}, listKind: {kind}List}}
  scope: Namespaced
  versions:
  - name: v1beta2
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
---
"
            )
        })
        .concat()
}

const CLUSTER: &str = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: TestCluster
metadata: {name: NAME}
spec: {controlPlaneEndpoint: {host: a.example.com, port: 6443}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: NAME}
spec:
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: TestCluster, name: NAME}
";

/// Of no infrastructure.
const NONE: &str = "apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: none}
spec: {clusterNetwork: {serviceDomain: a.example.com}}
";

const MACHINES: &str = "apiVersion: v1
kind: Secret
metadata: {name: boot}
stringData: {value: none}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: TestMachineTemplate
metadata: {name: nodes}
spec: {template: {spec: {size: 1}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: nodes}
spec:
  clusterName: all
  replicas: 2
  selector: {}
  template:
    spec:
      clusterName: all
      bootstrap: {dataSecretName: boot}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: TestMachineTemplate, name: nodes}
";
