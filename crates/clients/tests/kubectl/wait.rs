//! wait: for conditions, values and deletion, before and after they come true.

use expect_test::expect;

use super::session;

#[test]
fn wait_sees_what_is_so_and_what_comes() {
    let Some(kubectl) = session("wait") else { return };
    kubectl.run("kubectl create -f deployment.yaml -f pod.yaml -f configmap.yaml");
    let mut available = kubectl.follow("kubectl wait deployment/web --for=condition=Available --timeout=30s");
    let mut running =
        kubectl.follow("kubectl wait pod/web-0 --for=jsonpath='{.status.phase}'=Running --timeout=30s");
    let mut gone = kubectl.follow("kubectl wait configmap/app --for=delete --timeout=30s");
    let mut made = kubectl.follow("kubectl wait configmap/later --for=create --timeout=30s");
    kubectl.check(
        r#"
        kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Available","status":"True"}]}}'
        kubectl patch pod web-0 --subresource=status --type=merge -p '{"status":{"phase":"Running"}}'
        kubectl delete configmap app
        kubectl create configmap later --from-literal=a=b
        kubectl wait deployment/web --for=condition=Available
        kubectl wait deployment/web --for=condition=Progressing --timeout=1s
        kubectl wait configmap/app --for=delete
        kubectl wait configmap/app --for=condition=Ready --timeout=1s
        "#,
        expect![[""]],
    );
    let said = [available.lines(1), running.lines(1), gone.lines(1), made.lines(1)].concat();
    expect![[""]].assert_eq(&said);
}

#[test]
fn rollout_status_follows_the_status() {
    let Some(kubectl) = session("rollout") else { return };
    kubectl.run("kubectl create -f deployment.yaml");
    let mut status = kubectl.follow("kubectl rollout status deployment/web --timeout=30s");
    expect![[""]].assert_eq(&status.lines(1));
    kubectl.run(
        r#"kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}'"#,
    );
    expect![[""]].assert_eq(&status.lines(1));
}
