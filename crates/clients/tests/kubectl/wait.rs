//! wait: for conditions, values and deletion, before and after they come true.

use expect_test::expect;

use super::session;

#[test]
fn wait_sees_what_is_so_and_what_comes() {
    let Some(kubectl) = session("wait") else { return };
    kubectl.run("kubectl create -f deployment.yaml -f pod.yaml -f configmap.yaml");
    let mut available =
        kubectl.follow("kubectl wait deployment/web --for=condition=Available --timeout=120s -v=6");
    let mut running =
        kubectl.follow("kubectl wait pod/web-0 --for=jsonpath='{.status.phase}'=Running --timeout=120s -v=6");
    let mut gone = kubectl.follow("kubectl wait configmap/app --for=delete --timeout=120s -v=6");
    let mut made = kubectl.follow("kubectl wait configmap/later --for=create --timeout=120s -v=6");
    for waits in [&available, &running, &gone] {
        waits.told("watch=true");
    }
    made.told("404 Not Found");
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
        expect![[r#"
            $ kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Available","status":"True"}]}}'
            deployment.apps/web patched
            $ kubectl patch pod web-0 --subresource=status --type=merge -p '{"status":{"phase":"Running"}}'
            pod/web-0 patched
            $ kubectl delete configmap app
            configmap "app" deleted from wait namespace
            $ kubectl create configmap later --from-literal=a=b
            configmap/later created
            $ kubectl wait deployment/web --for=condition=Available
            deployment.apps/web condition met
            $ kubectl wait deployment/web --for=condition=Progressing --timeout=1s
            ! error: timed out waiting for the condition on deployments/web
            exit 1
            $ kubectl wait configmap/app --for=delete
            $ kubectl wait configmap/app --for=condition=Ready --timeout=1s
            ! Error from server (NotFound): configmaps "app" not found
            exit 1
        "#]],
    );
    let said = [available.lines(1), running.lines(1), gone.lines(1), made.lines(1)].concat();
    expect![[r#"
        deployment.apps/web condition met
        pod/web-0 condition met
        configmap/app condition met
        configmap/later condition met
    "#]]
    .assert_eq(&said);
}

#[test]
fn rollout_status_follows_the_status() {
    let Some(kubectl) = session("rollout") else { return };
    kubectl.run("kubectl create -f deployment.yaml");
    let mut status = kubectl.follow("kubectl rollout status deployment/web --timeout=120s");
    expect![[r#"
        Waiting for deployment spec update to be observed...
    "#]]
    .assert_eq(&status.lines(1));
    kubectl.run(
        r#"kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}'"#,
    );
    expect![[r#"
        deployment "web" successfully rolled out
    "#]]
    .assert_eq(&status.lines(1));
}
