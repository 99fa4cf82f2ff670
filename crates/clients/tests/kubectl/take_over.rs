//! What `kubectl apply` did by the client, and apply --server-side goes on with.

use expect_test::expect;

use super::session;

#[test]
fn what_was_applied_by_the_client_is_taken_over() {
    let Some(kubectl) = session("taken-over") else { return };
    kubectl.check(
        concat!(
            "
        kubectl apply -f configmap.yaml -f deployment.yaml
        ",
            managers!("configmap app"),
            "
        sed -i '/mode: fast/d' configmap.yaml
        kubectl apply --server-side -f configmap.yaml
        ",
            managers!("configmap app"),
            "
        kubectl get configmap app -o jsonpath='{.data}{\"\\n\"}'
        kubectl apply view-last-applied configmap app -o json
        kubectl apply -f configmap.yaml
        kubectl apply set-last-applied -f configmap.yaml
        kubectl apply view-last-applied configmap app
        sed -i 's/replicas: 2/replicas: 4/' deployment.yaml
        kubectl apply --server-side --field-manager=other -f deployment.yaml
        kubectl apply --server-side -f deployment.yaml
        ",
            managers!("deployment web"),
            "
        kubectl apply view-last-applied deployment web
        ",
        ),
        expect![[r#"
            $ kubectl apply -f configmap.yaml -f deployment.yaml
            configmap/app created
            deployment.apps/web created
            $ kubectl get configmap app --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            kubectl-client-side-apply Update  {"f:data":{".":{},"f:mode":{},"f:motd":{}},"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}},"f:labels":{".":{},"f:app":{},"f:tier":{}}}}
            $ sed -i '/mode: fast/d' configmap.yaml
            $ kubectl apply --server-side -f configmap.yaml
            configmap/app serverside-applied
            $ kubectl get configmap app --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            kubectl Apply  {"f:data":{"f:motd":{}},"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}}}
            kubectl-last-applied Apply  {"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}
            $ kubectl get configmap app -o jsonpath='{.data}{"\n"}'
            {"motd":"hello\nworld\n"}
            $ kubectl apply view-last-applied configmap app -o json
            {
              "apiVersion": "v1",
              "data": {
                "motd": "hello\nworld\n"
              },
              "kind": "ConfigMap",
              "metadata": {
                "labels": {
                  "app": "web",
                  "tier": "front"
                },
                "name": "app",
                "namespace": "taken-over"
              }
            }
            $ kubectl apply -f configmap.yaml
            configmap/app configured
            $ kubectl apply set-last-applied -f configmap.yaml
            configmap/app configured
            $ kubectl apply view-last-applied configmap app
            apiVersion: v1
            data:
              motd: |
                hello
                world
            kind: ConfigMap
            metadata:
              labels:
                app: web
                tier: front
              name: app
              namespace: taken-over
            $ sed -i 's/replicas: 2/replicas: 4/' deployment.yaml
            $ kubectl apply --server-side --field-manager=other -f deployment.yaml
            ! error: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas
            ! Please review the fields above--they currently have other managers. Here
            ! are the ways you can resolve this warning:
            ! * If you intend to manage all of these fields, please re-run the apply
            !   command with the `--force-conflicts` flag.
            ! * If you do not intend to manage all of the fields, please edit your
            !   manifest to remove references to the fields that should keep their
            !   current managers.
            ! * You may co-own fields by updating your manifest to match the existing
            !   value; in this case, you'll become the manager if the other manager(s)
            !   stop managing the field (remove it from their configuration).
            ! See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
            exit 1
            $ kubectl apply --server-side -f deployment.yaml
            deployment.apps/web serverside-applied
            $ kubectl get deployment web --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            kubectl Apply  {"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}
            kubectl-last-applied Apply  {"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}
            $ kubectl apply view-last-applied deployment web
            apiVersion: apps/v1
            kind: Deployment
            metadata:
              labels:
                app: web
              name: web
              namespace: taken-over
            spec:
              replicas: 4
              selector:
                matchLabels:
                  app: web
              template:
                metadata:
                  labels:
                    app: web
                spec:
                  containers:
                  - image: nginx:1.29
                    name: nginx
                    ports:
                    - containerPort: 80
        "#]],
    );
}
