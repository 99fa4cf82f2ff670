//! diff --server-side: what an apply would change, which is nothing after one.

use expect_test::expect;

use super::session;

#[test]
fn diff_shows_what_server_side_apply_would_change() {
    let Some(kubectl) = session("server-diff") else { return };
    kubectl.check(
        r"
        kubectl apply --server-side -f configmap.yaml -f deployment.yaml -f service.yaml
        kubectl diff --server-side -f configmap.yaml -f deployment.yaml -f service.yaml
        sed -i 's/mode: fast/mode: slow/' configmap.yaml
        sed -i 's/replicas: 2/replicas: 4/' deployment.yaml
        kubectl diff --server-side -f configmap.yaml -f deployment.yaml | grep '^[-+] '
        kubectl diff --server-side --field-manager=other -f configmap.yaml 2>&1 | grep -v 'keeps changing'
        kubectl diff --server-side --field-manager=other --force-conflicts -f configmap.yaml | grep '^[-+] '
        kubectl diff --server-side --show-managed-fields -f configmap.yaml | grep '^[-+] ' | grep -v 'time: '
        kubectl diff --server-side -f secret.yaml | grep '^[-+] '
        kubectl diff -f configmap.yaml -f deployment.yaml | grep '^[-+] '
        kubectl get configmap app -o jsonpath='{.data.mode}{.metadata.generation}'
        ",
        expect![[r#"
            $ kubectl apply --server-side -f configmap.yaml -f deployment.yaml -f service.yaml
            configmap/app serverside-applied
            deployment.apps/web serverside-applied
            service/web serverside-applied
            $ kubectl diff --server-side -f configmap.yaml -f deployment.yaml -f service.yaml
            $ sed -i 's/mode: fast/mode: slow/' configmap.yaml
            $ sed -i 's/replicas: 2/replicas: 4/' deployment.yaml
            $ kubectl diff --server-side -f configmap.yaml -f deployment.yaml | grep '^[-+] '
            -  generation: 1
            +  generation: 2
            -  replicas: 2
            +  replicas: 4
            -  mode: fast
            +  mode: slow
            $ kubectl diff --server-side --field-manager=other -f configmap.yaml 2>&1 | grep -v 'keeps changing'
            Error from server (Conflict): Apply failed with 1 conflict: conflict with "kubectl": .data.mode
            $ kubectl diff --server-side --field-manager=other --force-conflicts -f configmap.yaml | grep '^[-+] '
            -  mode: fast
            +  mode: slow
            $ kubectl diff --server-side --show-managed-fields -f configmap.yaml | grep '^[-+] ' | grep -v 'time: '
            -  mode: fast
            +  mode: slow
            $ kubectl diff --server-side -f secret.yaml | grep '^[-+] '
            +  password: '***'
            +  user: '***'
            +  creationTimestamp: "<time>"
            +  name: login
            +  namespace: server-diff
            +  uid: <uid>
            $ kubectl diff -f configmap.yaml -f deployment.yaml | grep '^[-+] '
            -  generation: 1
            +  generation: 2
            -  replicas: 2
            +  replicas: 4
            -  mode: fast
            +  mode: slow
            $ kubectl get configmap app -o jsonpath='{.data.mode}{.metadata.generation}'
            fast
        "#]],
    );
}
