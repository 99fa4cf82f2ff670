//! Kustomize, as it is in kubectl: a base, an overlay with generators and patches, both ways to apply it.

use expect_test::expect;
use forebay_clients::Session;

use super::session;

const BASE: &str = "\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [deployment.yaml, service.yaml]
configMapGenerator:
- name: settings
  literals: [mode=fast, motd=hello]
labels:
- pairs: {team: blue}
  includeSelectors: true
  includeTemplates: true
";

const OVERLAY: &str = "\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namePrefix: prod-
resources: [../base, job.yaml]
images:
- {name: nginx, newTag: '1.30'}
replicas:
- {name: web, count: 5}
configMapGenerator:
- name: settings
  behavior: merge
  literals: [mode=slow]
secretGenerator:
- name: login
  literals: [user=admin, password=secret]
commonAnnotations: {stage: production}
patches:
- target: {kind: Deployment, name: web}
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/envFrom, value: [{configMapRef: {name: settings}}, {secretRef: {name: login}}]}
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      template:
        spec:
          containers:
          - {name: side, image: busybox, env: [{name: MODE, value: fast}]}
";

/// A session with the base and the overlay.
fn overlay(name: &str) -> Option<Session<'static>> {
    let kubectl = session(name)?;
    kubectl.run("mkdir base overlay && cp deployment.yaml service.yaml base && cp job.yaml overlay");
    kubectl.file("base/kustomization.yaml", BASE);
    kubectl.file("overlay/kustomization.yaml", OVERLAY);
    Some(kubectl)
}

#[test]
fn an_overlay_is_applied_by_the_client() {
    let Some(kubectl) = overlay("kustomize") else { return };
    kubectl.check(
        r#"
        kubectl diff -k overlay | grep -c '^+ '
        kubectl apply -k overlay
        kubectl apply -k overlay
        kubectl diff -k overlay
        kubectl get deployment prod-web -o jsonpath='{.spec.replicas} {.spec.selector} {.spec.template.metadata}{"\n"}{.spec.template.spec.containers}{"\n"}'
        sed -i 's/mode=slow/mode=slower/; s/count: 5/count: 6/' overlay/kustomization.yaml
        kubectl diff -k overlay | grep '^[-+] '
        kubectl apply -k overlay
        kubectl get configmap,secret,deployment,service,job -l '!kubernetes.io/none' -o name | grep prod-
        kubectl get -k overlay -o name
        kubectl delete -k overlay
        "#,
        expect![[r#"
            $ kubectl diff -k overlay | grep -c '^+ '
            150
            $ kubectl apply -k overlay
            configmap/prod-settings-b2m4c6tm42 created
            secret/prod-login-g4g252bmmt created
            service/prod-web created
            deployment.apps/prod-web created
            job.batch/prod-once created
            $ kubectl apply -k overlay
            configmap/prod-settings-b2m4c6tm42 unchanged
            secret/prod-login-g4g252bmmt unchanged
            service/prod-web unchanged
            deployment.apps/prod-web unchanged
            job.batch/prod-once unchanged
            $ kubectl diff -k overlay
            $ kubectl get deployment prod-web -o jsonpath='{.spec.replicas} {.spec.selector} {.spec.template.metadata}{"\n"}{.spec.template.spec.containers}{"\n"}'
            5 {"matchLabels":{"app":"web","team":"blue"}} {"annotations":{"stage":"production"},"labels":{"app":"web","team":"blue"}}
            [{"env":[{"name":"MODE","value":"fast"}],"image":"busybox","imagePullPolicy":"Always","name":"side","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"},{"envFrom":[{"configMapRef":{"name":"prod-settings-b2m4c6tm42"}},{"secretRef":{"name":"prod-login-g4g252bmmt"}}],"image":"nginx:1.30","imagePullPolicy":"IfNotPresent","name":"nginx","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}]
            $ sed -i 's/mode=slow/mode=slower/; s/count: 5/count: 6/' overlay/kustomization.yaml
            $ kubectl diff -k overlay | grep '^[-+] '
            -  generation: 1
            +  generation: 2
            -  replicas: 5
            +  replicas: 6
            -            name: prod-settings-b2m4c6tm42
            +            name: prod-settings-2btb2th849
            +  mode: slower
            +  motd: hello
            +  annotations:
            +    stage: production
            +  creationTimestamp: "<time>"
            +  labels:
            +    team: blue
            +  name: prod-settings-2btb2th849
            +  namespace: kustomize
            +  uid: <uid>
            $ kubectl apply -k overlay
            configmap/prod-settings-2btb2th849 created
            secret/prod-login-g4g252bmmt unchanged
            service/prod-web unchanged
            deployment.apps/prod-web configured
            job.batch/prod-once unchanged
            $ kubectl get configmap,secret,deployment,service,job -l '!kubernetes.io/none' -o name | grep prod-
            configmap/prod-settings-2btb2th849
            configmap/prod-settings-b2m4c6tm42
            secret/prod-login-g4g252bmmt
            deployment.apps/prod-web
            service/prod-web
            job.batch/prod-once
            $ kubectl get -k overlay -o name
            configmap/prod-settings-2btb2th849
            secret/prod-login-g4g252bmmt
            service/prod-web
            deployment.apps/prod-web
            job.batch/prod-once
            $ kubectl delete -k overlay
            configmap "prod-settings-2btb2th849" deleted from kustomize namespace
            secret "prod-login-g4g252bmmt" deleted from kustomize namespace
            service "prod-web" deleted from kustomize namespace
            deployment.apps "prod-web" deleted from kustomize namespace
            job.batch "prod-once" deleted from kustomize namespace
        "#]],
    );
}

#[test]
fn an_overlay_is_applied_by_the_server() {
    let Some(kubectl) = overlay("kustomize-server") else { return };
    kubectl.check(
        r#"
        kubectl apply --server-side -k overlay
        kubectl apply --server-side -k overlay
        kubectl diff --server-side -k overlay
        kubectl get deployment prod-web --show-managed-fields -o jsonpath='{.metadata.managedFields[*].fieldsV1}{"\n"}'
        sed -i 's/mode=slow/mode=slower/; s/count: 5/count: 6/; s/, env: .*MODE.*]}/}/' overlay/kustomization.yaml
        kubectl diff --server-side -k overlay | grep '^[-+] '
        kubectl apply --server-side -k overlay
        kubectl get deployment prod-web -o jsonpath='{.spec.replicas} {.metadata.annotations} {.metadata.generation}{"\n"}'
        kubectl scale deployment prod-web --replicas=1
        kubectl apply --server-side -k overlay
        kubectl apply --server-side --force-conflicts -k overlay
        kubectl delete -k overlay
        "#,
        expect![[r#"
            $ kubectl apply --server-side -k overlay
            configmap/prod-settings-b2m4c6tm42 serverside-applied
            secret/prod-login-g4g252bmmt serverside-applied
            service/prod-web serverside-applied
            deployment.apps/prod-web serverside-applied
            job.batch/prod-once serverside-applied
            $ kubectl apply --server-side -k overlay
            configmap/prod-settings-b2m4c6tm42 serverside-applied
            secret/prod-login-g4g252bmmt serverside-applied
            service/prod-web serverside-applied
            deployment.apps/prod-web serverside-applied
            job.batch/prod-once serverside-applied
            $ kubectl diff --server-side -k overlay
            $ kubectl get deployment prod-web --show-managed-fields -o jsonpath='{.metadata.managedFields[*].fieldsV1}{"\n"}'
            {"f:metadata":{"f:annotations":{"f:stage":{}},"f:labels":{"f:app":{},"f:team":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:annotations":{"f:stage":{}},"f:labels":{"f:app":{},"f:team":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{".":{},"f:envFrom":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}},"k:{\"name\":\"side\"}":{".":{},"f:env":{"k:{\"name\":\"MODE\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{}}}}}}}
            $ sed -i 's/mode=slow/mode=slower/; s/count: 5/count: 6/; s/, env: .*MODE.*]}/}/' overlay/kustomization.yaml
            $ kubectl diff --server-side -k overlay | grep '^[-+] '
            -  generation: 1
            +  generation: 2
            -  replicas: 5
            +  replicas: 6
            -      - env:
            -        - name: MODE
            -          value: fast
            -        image: busybox
            +      - image: busybox
            -            name: prod-settings-b2m4c6tm42
            +            name: prod-settings-2btb2th849
            +  mode: slower
            +  motd: hello
            +  annotations:
            +    stage: production
            +  creationTimestamp: "<time>"
            +  labels:
            +    team: blue
            +  name: prod-settings-2btb2th849
            +  namespace: kustomize-server
            +  uid: <uid>
            $ kubectl apply --server-side -k overlay
            configmap/prod-settings-2btb2th849 serverside-applied
            secret/prod-login-g4g252bmmt serverside-applied
            service/prod-web serverside-applied
            deployment.apps/prod-web serverside-applied
            job.batch/prod-once serverside-applied
            $ kubectl get deployment prod-web -o jsonpath='{.spec.replicas} {.metadata.annotations} {.metadata.generation}{"\n"}'
            6 {"stage":"production"} 2
            $ kubectl scale deployment prod-web --replicas=1
            deployment.apps/prod-web scaled
            $ kubectl apply --server-side -k overlay
            configmap/prod-settings-2btb2th849 serverside-applied
            secret/prod-login-g4g252bmmt serverside-applied
            service/prod-web serverside-applied
            job.batch/prod-once serverside-applied
            ! error: Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas
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
            $ kubectl apply --server-side --force-conflicts -k overlay
            configmap/prod-settings-2btb2th849 serverside-applied
            secret/prod-login-g4g252bmmt serverside-applied
            service/prod-web serverside-applied
            deployment.apps/prod-web serverside-applied
            job.batch/prod-once serverside-applied
            $ kubectl delete -k overlay
            configmap "prod-settings-2btb2th849" deleted from kustomize-server namespace
            secret "prod-login-g4g252bmmt" deleted from kustomize-server namespace
            service "prod-web" deleted from kustomize-server namespace
            deployment.apps "prod-web" deleted from kustomize-server namespace
            job.batch "prod-once" deleted from kustomize-server namespace
        "#]],
    );
}
