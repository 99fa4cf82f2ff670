//! apply --prune with an apply set: what left it is deleted, kind by kind in any order.

use expect_test::expect;

use super::session;

#[test]
fn an_apply_set_prunes_what_left_it() {
    let Some(kubectl) = session("apply-set") else { return };
    kubectl.check(
        concat!(
            r#"
        KUBECTL_APPLYSET=true kubectl apply --server-side -n apply-set --prune --applyset=configmaps/set -f configmap.yaml -f deployment.yaml -f service.yaml
        kubectl get configmap set -o yaml
        kubectl get configmap,deployment,service -l applyset.kubernetes.io/part-of -o name
        KUBECTL_APPLYSET=true kubectl apply --server-side -n apply-set --prune --applyset=configmaps/set -f configmap.yaml --dry-run=server | sort
        KUBECTL_APPLYSET=true kubectl apply --server-side -n apply-set --prune --applyset=configmaps/set -f configmap.yaml | sort
        kubectl get configmap,deployment,service -l applyset.kubernetes.io/part-of -o name
        kubectl get configmap set -o yaml
        "#,
            managers!("configmap set"),
            "
        KUBECTL_APPLYSET=true kubectl apply -n apply-set --prune --applyset=other -f secret.yaml
        KUBECTL_APPLYSET=true kubectl apply --server-side -n apply-set --prune --applyset=other -f configmap.yaml -f secret.yaml
        kubectl get secret other -o yaml
        ",
        ),
        expect![[r#"
            $ KUBECTL_APPLYSET=true kubectl apply --server-side -n apply-set --prune --applyset=configmaps/set -f configmap.yaml -f deployment.yaml -f service.yaml
            configmap/app serverside-applied
            deployment.apps/web serverside-applied
            service/web serverside-applied
            $ kubectl get configmap set -o yaml
            apiVersion: v1
            kind: ConfigMap
            metadata:
              annotations:
                applyset.kubernetes.io/additional-namespaces: ""
                applyset.kubernetes.io/contains-group-kinds: ConfigMap,Deployment.apps,Service
                applyset.kubernetes.io/tooling: kubectl/v1.36.3
              creationTimestamp: "<time>"
              labels:
                applyset.kubernetes.io/id: applyset-a5KVSmk5knSTeqlhp2IxOW4wTLJ7O71zlFRpGwOJLPw-v1
              name: set
              namespace: apply-set
              resourceVersion: "<rv>"
              uid: <uid>
            $ kubectl get configmap,deployment,service -l applyset.kubernetes.io/part-of -o name
            configmap/app
            deployment.apps/web
            service/web
            $ KUBECTL_APPLYSET=true kubectl apply --server-side -n apply-set --prune --applyset=configmaps/set -f configmap.yaml --dry-run=server | sort
            configmap/app serverside-applied (server dry run)
            deployment.apps/web pruned (server dry run)
            service/web pruned (server dry run)
            $ KUBECTL_APPLYSET=true kubectl apply --server-side -n apply-set --prune --applyset=configmaps/set -f configmap.yaml | sort
            configmap/app serverside-applied
            deployment.apps/web pruned
            service/web pruned
            $ kubectl get configmap,deployment,service -l applyset.kubernetes.io/part-of -o name
            configmap/app
            $ kubectl get configmap set -o yaml
            apiVersion: v1
            kind: ConfigMap
            metadata:
              annotations:
                applyset.kubernetes.io/additional-namespaces: ""
                applyset.kubernetes.io/contains-group-kinds: ConfigMap
                applyset.kubernetes.io/tooling: kubectl/v1.36.3
              creationTimestamp: "<time>"
              labels:
                applyset.kubernetes.io/id: applyset-a5KVSmk5knSTeqlhp2IxOW4wTLJ7O71zlFRpGwOJLPw-v1
              name: set
              namespace: apply-set
              resourceVersion: "<rv>"
              uid: <uid>
            $ kubectl get configmap set --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            kubectl-applyset Apply  {"f:metadata":{"f:annotations":{"f:applyset.kubernetes.io/additional-namespaces":{},"f:applyset.kubernetes.io/contains-group-kinds":{},"f:applyset.kubernetes.io/tooling":{}},"f:labels":{"f:applyset.kubernetes.io/id":{}}}}
            $ KUBECTL_APPLYSET=true kubectl apply -n apply-set --prune --applyset=other -f secret.yaml
            secret/login created
            $ KUBECTL_APPLYSET=true kubectl apply --server-side -n apply-set --prune --applyset=other -f configmap.yaml -f secret.yaml
            configmap/app serverside-applied
            secret/login serverside-applied
            $ kubectl get secret other -o yaml
            apiVersion: v1
            kind: Secret
            metadata:
              annotations:
                applyset.kubernetes.io/additional-namespaces: ""
                applyset.kubernetes.io/contains-group-kinds: ConfigMap,Secret
                applyset.kubernetes.io/tooling: kubectl/v1.36.3
              creationTimestamp: "<time>"
              labels:
                applyset.kubernetes.io/id: applyset-SmR7olgKh_rPY5arepBWWrrLkCLElnzilg1VRNwJcN8-v1
              name: other
              namespace: apply-set
              resourceVersion: "<rv>"
              uid: <uid>
            type: Opaque
        "#]],
    );
}
