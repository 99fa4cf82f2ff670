//! cert-manager, its controllers and its webhook: a self-signed issuer, and a certificate by it.

use forebay_clients::{Session, ports};

use super::{Operator, server};

#[test]
fn cert_manager_issues_a_certificate_and_its_webhook_refuses_a_bad_one() {
    let Some(operator) = Operator::asked("cert-manager") else { return };
    let mut server = server();
    if operator.define(&server, "cert-manager", "deploy/crds").is_none() {
        return;
    }
    let [port] = ports::free().unwrap_or_else(|why| panic!("{why}"));
    let mut command = operator.command();
    command.env("KUBECONFIG", server.kubeconfig());
    command.arg(format!("-secure-port={port}")).arg("-namespace=cert-manager");
    operator.start(&mut server, &mut command);
    let Some(kubectl) = Session::new(&server, "work") else { return };
    let own = "secret/cert-manager-webhook-ca --namespace=cert-manager";
    kubectl.run(&format!("kubectl wait --for=create --timeout=120s {own}"));
    kubectl.file("webhooks.yaml", &webhooks(port));
    kubectl.run("kubectl create -f webhooks.yaml");
    for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
        let known = "--for=jsonpath={.webhooks[0].clientConfig.caBundle}";
        kubectl.run(&format!("kubectl wait {known} --timeout=120s {kind}/cert-manager-webhook"));
    }
    operator.saw("it has told its webhooks' configurations who signs for them");
    kubectl.file("issued.yaml", ISSUED);
    // Its webhook is asked about these, and answers once it has a certificate.
    kubectl.run("until kubectl apply -f issued.yaml; do sleep 1; done");
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
    operator.still_runs(&mut server);
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
fn webhooks(port: u16) -> String {
    let one = |sort: &str, path: &str, rule: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1
kind: {sort}WebhookConfiguration
metadata:
  name: cert-manager-webhook
  annotations: {{cert-manager.io/inject-ca-from-secret: cert-manager/cert-manager-webhook-ca}}
webhooks:
- name: webhook.cert-manager.io
  admissionReviewVersions: [v1]
  matchPolicy: Equivalent
  timeoutSeconds: 30
  failurePolicy: Fail
  sideEffects: None
  clientConfig: {{url: 'https://localhost:{port}/{path}'}}
  rules:
  - {rule}
"
        )
    };
    let all = "{apiGroups: [cert-manager.io, acme.cert-manager.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: ['*/*']}";
    let requests = "{apiGroups: [cert-manager.io], apiVersions: [v1], operations: [CREATE], resources: [certificaterequests]}";
    format!("{}---\n{}", one("Validating", "validate", all), one("Mutating", "mutate", requests))
}
