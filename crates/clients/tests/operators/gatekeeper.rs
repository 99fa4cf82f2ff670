//! Gatekeeper: templates become definitions, constraints deny by its webhook and by policies that it writes,
//! mutators fill in, and its audit counts what was there before. The manifests are those of its own tests.

use forebay_clients::{Session, ports};

use super::{Operator, Webhook, server};

#[test]
fn gatekeeper_denies_mutates_and_audits() {
    let Some(operator) = Operator::asked("gatekeeper") else { return };
    let mut server = server();
    let webhook = Webhook::new(&server);
    let [health, metrics] = ports::free().unwrap_or_else(|why| panic!("{why}"));
    let manifests = format!("-f {}", operator.source("deploy/gatekeeper.yaml"));
    let kubeconfig = {
        let defined = operator.define(&server, "gatekeeper-system", "charts/gatekeeper/crds");
        let Some(kubectl) = defined else { return };
        // What it notes is owned by the pod that it runs in, and goes with it.
        kubectl.run("kubectl run here --image=none");
        operator.account(&kubectl, &manifests, "gatekeeper-system", "gatekeeper-admin")
    };
    let home = server.dir().display().to_string();
    let found = server.dir().join("audit");
    std::fs::create_dir(&found).unwrap_or_else(|why| panic!("{}: {why}", found.display()));
    let mut command = operator.command();
    command.args([
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--port={}", webhook.port),
        "--host=127.0.0.1".to_owned(),
        format!("--cert-dir={home}"),
        "--disable-cert-rotation".to_owned(),
        format!("--health-addr=127.0.0.1:{health}"),
        format!("--prometheus-port={metrics}"),
        format!("--api-cache-dir={}", found.display()),
        "--audit-interval=3".to_owned(),
    ]);
    command.env("POD_NAMESPACE", "gatekeeper-system").env("POD_NAME", "here");
    operator.start(&mut server, &mut command);
    let Some(kubectl) = Session::new(&server, "gatekeeper-test-playground") else { return };
    let own = |path: &str| operator.source(&format!("test/bats/tests/{path}.yaml"));
    let bad = own("bad/bad_cm");
    // There before anybody looks.
    kubectl.run(&format!("kubectl create -f {bad}"));
    webhook.create(&kubectl, &manifests, |_| true);

    // It looks at templates itself, so that it has to be there.
    let template = own("templates/k8srequiredlabels_template");
    kubectl.run(&format!("until kubectl apply -f {template}; do sleep 1; done"));
    kubectl.run("kubectl wait --for=create --timeout=120s crd/k8srequiredlabels.constraints.gatekeeper.sh");
    kubectl.run("kubectl wait --for=condition=Established --timeout=60s crd/k8srequiredlabels.constraints.gatekeeper.sh");
    operator.saw("a template has become a definition");
    kubectl.run(&format!("kubectl apply -f {}", own("constraints/all_cm_must_have_gatekeeper")));
    kubectl.run(
        "kubectl wait --for=jsonpath={.status.byPod[0].enforced}=true --timeout=120s k8srequiredlabels --all",
    );
    let renamed = format!("sed s/bad-cm/other/ {bad}");
    kubectl.run(&format!("while {renamed} | kubectl create --dry-run=server -f -; do sleep 1; done"));
    let refused = kubectl.transcript(&format!("{renamed} | kubectl create -f -"));
    assert!(
        refused.contains("admission webhook \"validation.gatekeeper.sh\" denied the request"),
        "{refused}"
    );
    operator.saw(refused.lines().find(|line| line.contains("denied")).unwrap_or_default());
    kubectl.run(&format!("kubectl create -f {}", own("good/good_cm")));
    kubectl.run(
        "kubectl wait --for=jsonpath={.status.totalViolations}=2 --timeout=120s k8srequiredlabels --all",
    );
    let found =
        kubectl.run("kubectl get k8srequiredlabels -o 'jsonpath={.items[*].status.violations[*].name}'");
    let mut found: Vec<&str> = found.split(' ').collect();
    found.sort_unstable();
    assert_eq!(found, ["bad-cm", "kube-root-ca.crt"]);
    operator.saw("its audit has found the two that were there before");

    kubectl.run(&format!(
        "kubectl apply -f {} -f {}",
        own("mutations/k8sownerlabel_assignmetadata"),
        own("mutations/k8sexternalip_assign")
    ));
    kubectl.run("kubectl wait --for=jsonpath={.status.byPod[0].enforced}=true --timeout=120s assignmetadata,assign --all");
    kubectl.run("kubectl delete k8srequiredlabels --all");
    let own_label = own("mutations/mutate_cm");
    kubectl.run(&format!("until kubectl create --dry-run=server -o yaml -f {own_label} | grep -q 'owner: gatekeeper'; do sleep 1; done"));
    let addresses = kubectl.run(&format!(
        "kubectl create -f {} -o 'jsonpath={{.spec.externalIPs}}'",
        own("mutations/mutate_svc")
    ));
    assert_eq!(addresses, "");
    operator.saw("one mutator adds a label, another takes a Service's external addresses away");

    kubectl.run(&format!("kubectl apply -f {}", own("templates/k8srequiredlabels_template_vap")));
    kubectl.run(
        "kubectl wait --for=create --timeout=120s validatingadmissionpolicy/gatekeeper-k8srequiredlabelsvap",
    );
    kubectl.run(&format!(
        "until kubectl apply -f {}; do sleep 1; done",
        own("constraints/all_ns_must_have_label_provided_vapbinding")
    ));
    kubectl.run("kubectl wait --for=create --timeout=120s validatingadmissionpolicybinding/gatekeeper-k8srequiredlabelsvap-all-must-have-label");
    let namespace = own("bad/bad_ns");
    kubectl.run(&format!("until kubectl create --dry-run=server -f {namespace} 2>&1 | grep -q ValidatingAdmissionPolicy; do sleep 1; done"));
    let refused = kubectl.transcript(&format!("kubectl create -f {namespace}"));
    assert!(refused.contains("ValidatingAdmissionPolicy 'gatekeeper-k8srequiredlabelsvap'"), "{refused}");
    operator.saw(refused.lines().find(|line| line.contains("denied")).unwrap_or_default());
    kubectl.run(&format!("kubectl create -f {}", own("good/good_ns")));
    drop(kubectl);
    operator.still_runs(&mut server);
}
