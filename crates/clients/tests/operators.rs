//! Operators that people run, on our server: what each of them is for, done once.
//!
//! In: `FOREBAY_OPERATORS`, where `cargo xtask operators` has built their programs and left links to their
//! sources; without it there is nothing to run. Out: what was seen, on standard output. Never: built here.

use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_clients::{ControlPlane, Session, pki, ports};
use serde_json::{Value, json};

/// An operator's program and its sources.
struct Operator {
    name: &'static str,
    home: PathBuf,
}

impl Operator {
    /// `None`: nobody asks for it.
    fn asked(name: &'static str) -> Option<Operator> {
        let home = PathBuf::from(std::env::var_os("FOREBAY_OPERATORS")?);
        home.join(name).exists().then_some(Operator { name, home })
    }

    fn command(&self) -> Command {
        Command::new(self.home.join(self.name))
    }

    /// A path of its sources.
    fn source(&self, path: &str) -> String {
        self.home.join(format!("{}.source", self.name)).join(path).display().to_string()
    }

    fn saw(&self, what: &str) {
        println!("{}: {what}", self.name);
    }
}

/// A server with the controllers that a lone one has.
fn server() -> ControlPlane {
    let flags = vec!["--controllers=*".to_owned(), "--authorization-mode=RBAC".to_owned()];
    ControlPlane::start_told(flags).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn cert_manager_issues_a_certificate_and_its_webhook_refuses_a_bad_one() {
    let Some(operator) = Operator::asked("cert-manager") else { return };
    let mut server = server();
    {
        let Some(kubectl) = Session::new(&server, "cert-manager") else { return };
        kubectl.run(&format!("kubectl create -f {}", operator.source("deploy/crds")));
        kubectl.run("kubectl wait --for=condition=Established --timeout=60s crd --all");
    }
    let [port] = ports::free().unwrap_or_else(|why| panic!("{why}"));
    let mut command = operator.command();
    command.arg(format!("-kubeconfig={}", server.kubeconfig().display()));
    command.arg(format!("-secure-port={port}")).arg("-namespace=cert-manager");
    server.start_beside("cert-manager", &mut command).unwrap_or_else(|why| panic!("{why}"));
    let Some(kubectl) = Session::new(&server, "work") else { return };
    kubectl.run(
        "kubectl wait --for=create --timeout=120s secret/cert-manager-webhook-ca --namespace=cert-manager",
    );
    let authority = kubectl.run(
        "kubectl get secret cert-manager-webhook-ca --namespace=cert-manager -o 'jsonpath={.data.ca\\.crt}'",
    );
    kubectl.file("webhooks.yaml", &webhooks(port, authority.trim()));
    kubectl.run("kubectl create -f webhooks.yaml");
    kubectl.file("issued.yaml", ISSUED);
    kubectl.run("kubectl create -f issued.yaml");
    kubectl.run("kubectl wait --for=condition=Ready --timeout=120s issuer/own");
    kubectl.run("kubectl wait --for=condition=Ready --timeout=120s certificate/web");
    let secret = kubectl.run("kubectl get secret web-tls -o 'jsonpath={.data.tls\\.crt}'");
    assert!(secret.starts_with("LS0tLS1CRUdJTiBD"), "no certificate in PEM: {secret}");
    let request =
        kubectl.run("kubectl get certificaterequests -o 'jsonpath={.items[*].status.conditions[*].type}'");
    operator.saw(&format!("a self-signed issuer has issued a certificate; its request is {request}"));
    kubectl.file(
        "bad.yaml",
        &ISSUED.replace("name: web\n", "name: bad\n").replace("duration: 24h", "duration: 1m"),
    );
    let refused = kubectl.transcript("kubectl create -f bad.yaml");
    assert!(
        refused.contains("admission webhook \"webhook.cert-manager.io\" denied the request"),
        "{refused}"
    );
    operator.saw(refused.lines().find(|line| line.contains("denied")).unwrap_or_default());
    // It is renewed when somebody asks for it.
    let before = kubectl.run("kubectl get certificate web -o 'jsonpath={.status.revision}'");
    kubectl.run("kubectl delete secret web-tls");
    kubectl.run("kubectl wait --for=jsonpath={.status.revision}=2 --timeout=120s certificate/web");
    operator.saw(&format!("its secret was deleted, and revision {} follows {before}", 2));
    drop(kubectl);
    server.beside_alive().unwrap_or_else(|why| panic!("{why}"));
}

const ISSUED: &str = "apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: own}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: web
spec:
  secretName: web-tls
  duration: 24h
  dnsNames: [web.example.com]
  issuerRef: {name: own, kind: Issuer}
";

/// As cert-manager's chart has them, but for where they are.
fn webhooks(port: u16, authority: &str) -> String {
    let one = |sort: &str, path: &str, rule: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1
kind: {sort}WebhookConfiguration
metadata: {{name: cert-manager-webhook}}
webhooks:
- name: webhook.cert-manager.io
  admissionReviewVersions: [v1]
  matchPolicy: Equivalent
  timeoutSeconds: 30
  failurePolicy: Fail
  sideEffects: None
  clientConfig: {{url: 'https://localhost:{port}/{path}', caBundle: {authority}}}
  rules:
  - {rule}
"
        )
    };
    let all = "{apiGroups: [cert-manager.io, acme.cert-manager.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: ['*/*']}";
    let requests = "{apiGroups: [cert-manager.io], apiVersions: [v1], operations: [CREATE], resources: [certificaterequests]}";
    format!("{}---\n{}", one("Validating", "validate", all), one("Mutating", "mutate", requests))
}

#[test]
fn prometheus_operator_makes_a_stateful_set_and_its_configuration() {
    let Some(operator) = Operator::asked("prometheus-operator") else { return };
    let mut server = server();
    {
        let Some(kubectl) = Session::new(&server, "monitoring") else { return };
        // They are too long for what kubectl apply notes of an object.
        kubectl.run(&format!("kubectl create -f {}", operator.source("example/prometheus-operator-crd")));
        kubectl.run("kubectl wait --for=condition=Established --timeout=60s crd --all");
    }
    let trust = server.credentials().unwrap_or_else(|why| panic!("{why}"));
    let file = |name: &str, text: &[u8]| {
        let path = server.dir().join(name);
        std::fs::write(&path, text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        path.display().to_string()
    };
    let mut command = operator.command();
    command.arg(format!("--apiserver=https://127.0.0.1:{}", server.port()));
    command.arg(format!("--ca-file={}", file("operator-ca.crt", &trust.authority)));
    command.arg(format!("--cert-file={}", file("operator.crt", &trust.certificate)));
    command.arg(format!("--key-file={}", file("operator.key", &trust.key)));
    command.args(["--web.listen-address=127.0.0.1:0", "--log-level=debug"]);
    server.start_beside("prometheus-operator", &mut command).unwrap_or_else(|why| panic!("{why}"));
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
    let scaled = kubectl.run("kubectl scale prometheus main --replicas=1");
    kubectl.run("kubectl wait --for=jsonpath={.spec.replicas}=1 --timeout=120s statefulset/prometheus-main");
    operator.saw(&format!("kubectl scale says: {}", scaled.trim()));
    kubectl.run("kubectl delete prometheus main");
    kubectl.run("kubectl wait --for=delete --timeout=120s statefulset/prometheus-main");
    operator.saw("it is deleted, and the StatefulSet goes with it");
    drop(kubectl);
    server.beside_alive().unwrap_or_else(|why| panic!("{why}"));
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

#[test]
fn kueue_admits_a_job_by_quota_and_the_next_once_that_is_gone() {
    let Some(operator) = Operator::asked("kueue") else { return };
    let mut server = server();
    let certificate = pki::write_webhook(server.dir()).unwrap_or_else(|why| panic!("{why}"));
    let authority = STANDARD.encode(certificate);
    let [port, health] = ports::free().unwrap_or_else(|why| panic!("{why}"));
    let home = server.dir().display().to_string();
    {
        let Some(kubectl) = Session::new(&server, "kueue-system") else { return };
        kubectl.run(&format!("kubectl create -f {}", operator.source("config/components/crd/bases")));
        kubectl.run("kubectl wait --for=condition=Established --timeout=60s crd --all");
        // As its kustomization has it, but for where it is.
        let client = json!({ "url": format!("https://localhost:{port}/convert"), "caBundle": authority });
        let webhook = json!({ "conversionReviewVersions": ["v1"], "clientConfig": client });
        let patch = json!({ "spec": { "conversion": { "strategy": "Webhook", "webhook": webhook } } });
        for kind in ["clusterqueues", "localqueues", "workloads"] {
            kubectl.run(&format!("kubectl patch crd {kind}.kueue.x-k8s.io --type=merge -p '{patch}'"));
        }
    }
    let config = format!(
        "apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {{healthProbeBindAddress: '127.0.0.1:{health}'}}
metrics: {{bindAddress: '0'}}
webhook: {{host: 127.0.0.1, port: {port}, certDir: {home}}}
leaderElection: {{leaderElect: false}}
internalCertManagement: {{enable: false}}
integrations: {{frameworks: [batch/job]}}
"
    );
    let file = server.dir().join("kueue.yaml");
    std::fs::write(&file, config).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let mut command = operator.command();
    command.arg(format!("--config={}", file.display())).arg("--feature-gates=VisibilityOnDemand=false");
    command.env("KUBECONFIG", server.kubeconfig());
    server.start_beside("kueue", &mut command).unwrap_or_else(|why| panic!("{why}"));
    let Some(kubectl) = Session::new(&server, "work") else { return };
    let manifests = operator.source("config/components/webhook/manifests.yaml");
    let shown = kubectl.run(&format!("kubectl create --dry-run=client -o json -f {manifests}"));
    kubectl.file("webhooks.json", &kueue_webhooks(&shown, port, &authority).to_string());
    kubectl.run("kubectl create -f webhooks.json");
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
    server.beside_alive().unwrap_or_else(|why| panic!("{why}"));
}

/// Its webhooks for its own kinds and for jobs, where it is.
///
/// - `shown`: its manifests, as kubectl shows them.
fn kueue_webhooks(shown: &str, port: u16, authority: &str) -> Value {
    let mut all = Vec::new();
    let read = serde_json::Deserializer::from_str(shown).into_iter::<Value>();
    // One behind the other, or in a list.
    let each = read.flat_map(|one| match one.unwrap_or_else(|why| panic!("{why}: {shown}")) {
        Value::Object(mut list) if list.contains_key("items") => {
            list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
        }
        one => vec![one],
    });
    for mut one in each {
        let hooks = one["webhooks"].as_array_mut().expect("webhooks");
        hooks.retain(|hook| {
            let path = hook["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
            path.contains("-kueue-x-k8s-io-") || path.ends_with("-batch-v1-job")
        });
        for hook in hooks {
            let path = hook["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
            let url = format!("https://localhost:{port}{path}");
            hook["clientConfig"] = json!({ "url": url, "caBundle": authority });
        }
        all.push(one);
    }
    json!({ "apiVersion": "v1", "kind": "List", "items": all })
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
