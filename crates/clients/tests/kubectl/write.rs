//! apply, create, replace, patch, edit, label, annotate, scale, delete.

use expect_test::expect;

use super::session;

#[test]
fn apply_creates_then_finds_nothing_to_do_then_changes() {
    let Some(kubectl) = session("apply") else { return };
    kubectl.check(
        "
        kubectl apply -f configmap.yaml -f secret.yaml -f pod.yaml -f deployment.yaml -f service.yaml -f job.yaml
        kubectl apply -f configmap.yaml -f secret.yaml -f pod.yaml -f deployment.yaml -f service.yaml -f job.yaml
        kubectl diff -f deployment.yaml
        sed -i 's/replicas: 2/replicas: 3/; s/nginx:1.29/nginx:1.30/' deployment.yaml
        kubectl diff -f deployment.yaml | grep '^[+-] '
        kubectl apply -f deployment.yaml
        kubectl get deployment web -o jsonpath='{.metadata.generation} {.spec.replicas} {.spec.template.spec.containers[0].image}{\"\\n\"}'
        sed -i '/mode: fast/d' configmap.yaml
        kubectl apply -f configmap.yaml
        kubectl get configmap app -o jsonpath='{.data}{\"\\n\"}'
        kubectl get secret login -o jsonpath='{.data}{\"\\n\"}'
        ",
        expect![[""]],
    );
}

#[test]
fn server_side_apply_is_served_or_refused_clearly() {
    let Some(kubectl) = session("ssa") else { return };
    let said = kubectl.transcript("kubectl apply --server-side -f configmap.yaml");
    let served = said.contains("configmap/app serverside-applied");
    assert!(served || said.contains("415") || said.contains("UnsupportedMediaType"), "{said}");
}

#[test]
fn create_in_all_its_forms() {
    let Some(kubectl) = session("create") else { return };
    kubectl.check(
        "
        kubectl create -f configmap.yaml
        kubectl create -f configmap.yaml
        kubectl create configmap made --from-literal=a=1 --from-literal=b=two
        kubectl create configmap made --from-literal=a=1 --dry-run=client -o yaml
        kubectl create configmap dry --from-literal=a=1 --dry-run=server
        kubectl create configmap dry --from-literal=a=1 --dry-run=server -o yaml
        kubectl get configmap dry
        kubectl create secret generic keys --from-literal=k=v
        kubectl create deployment made --image=nginx:1.29 --replicas=2
        kubectl create job made --image=busybox:1.37 -- true
        kubectl create cronjob made --image=busybox:1.37 --schedule='*/5 * * * *' -- true
        kubectl create service clusterip made --tcp=80:8080 --clusterip=None
        kubectl create serviceaccount made
        kubectl create role made --verb=get,list --resource=pods
        kubectl create rolebinding made --role=made --serviceaccount=create:made
        kubectl create quota made --hard=pods=2
        kubectl run made --image=nginx:1.29
        kubectl get cm,secret,deploy,job,cronjob,svc,sa,role,rolebinding,quota,pod -o name | grep -v -e kube-root-ca -e serviceaccount/default
        ",
        expect![[""]],
    );
}

#[test]
fn the_stored_object_is_what_kube_apiserver_would_store() {
    let Some(kubectl) = session("stored") else { return };
    kubectl.check(
        "
        kubectl create -f pod.yaml -o yaml
        kubectl create -f deployment.yaml -o yaml
        kubectl create -f service.yaml -o yaml
        kubectl create -f job.yaml -o yaml | grep -v -e controller-uid
        kubectl create -f configmap.yaml -o json
        ",
        expect![[""]],
    );
}

#[test]
fn replace_needs_the_object_and_its_newest_version() {
    let Some(kubectl) = session("replace") else { return };
    kubectl.check(
        "
        kubectl replace -f configmap.yaml
        kubectl create -f configmap.yaml
        kubectl get configmap app -o yaml > old.yaml
        sed 's/mode: fast/mode: slow/' old.yaml > new.yaml
        kubectl replace -f new.yaml
        kubectl replace -f old.yaml
        kubectl get configmap app -o jsonpath='{.data.mode}{\"\\n\"}'
        kubectl replace -f configmap.yaml
        kubectl replace --force -f configmap.yaml
        kubectl get configmap app -o jsonpath='{.data.mode}{\"\\n\"}'
        ",
        expect![[""]],
    );
}

#[test]
fn all_three_patches() {
    let Some(kubectl) = session("patch") else { return };
    kubectl.check(
        r#"
        kubectl create -f deployment.yaml -f configmap.yaml
        kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox:1.37"}]}}}}'
        kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].name}{"\n"}'
        kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}'
        kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].name}{"\n"}'
        kubectl patch deployment web --type=merge -p '{"spec":{"replicas":5,"template":{"spec":{"containers":[{"name":"only","image":"busybox:1.37"}]}}}}'
        kubectl get deployment web -o jsonpath='{.spec.replicas} {.spec.template.spec.containers[*].name}{"\n"}'
        kubectl patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":5},{"op":"replace","path":"/spec/replicas","value":6},{"op":"add","path":"/metadata/labels/a~1b","value":"c"}]'
        kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.labels}{"\n"}'
        kubectl patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":5}]'
        kubectl patch deployment web --type=json -p '[{"op":"remove","path":"/spec/nothing"}]'
        kubectl patch configmap app --type=merge -p '{"data":{"mode":null,"new":"1"}}'
        kubectl patch configmap app --type=merge -p '{"data":{"new":"1"}}'
        kubectl get configmap app -o jsonpath='{.data}{"\n"}'
        kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"replicas":6},"spec":{"replicas":1}}'
        kubectl get deployment web -o jsonpath='{.status.replicas} {.spec.replicas}{"\n"}'
        kubectl patch configmap app -p 'not json'
        kubectl patch configmap app -p '{"data":{"new":1}}'
        "#,
        expect![[""]],
    );
}

#[test]
fn edit_with_an_editor() {
    let Some(kubectl) = session("edit") else { return };
    kubectl.check(
        "
        kubectl create -f configmap.yaml
        EDITOR='sed -i s/fast/slow/' kubectl edit configmap app
        kubectl get configmap app -o jsonpath='{.data.mode}{\"\\n\"}'
        EDITOR=true kubectl edit configmap app
        kubectl create -f deployment.yaml
        EDITOR='sed -i s/nginx:1.29/nginx:1.30/' kubectl edit deployment/web -o json
        kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}{\"\\n\"}'
        EDITOR='sed -i s/app:.web/app:.Web!/' kubectl edit configmap app 2>&1 | grep -v -e '^A copy of' -e '^Edit cancelled'
        ",
        expect![[""]],
    );
}

#[test]
fn labels_annotations_and_scale() {
    let Some(kubectl) = session("label") else { return };
    kubectl.check(
        "
        kubectl create -f deployment.yaml -f configmap.yaml
        kubectl label configmap app tier=back
        kubectl label configmap app tier=back --overwrite
        kubectl label configmap app tier=back
        kubectl label configmap app tier-
        kubectl label configmap app 'bad key=1'
        kubectl annotate configmap app note='two words'
        kubectl annotate configmap app note-
        kubectl get configmap app -o jsonpath='{.metadata.labels} {.metadata.annotations}{\"\\n\"}'
        kubectl scale deployment web --replicas=4
        kubectl scale deployment web --replicas=5 --current-replicas=3
        kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.generation}{\"\\n\"}'
        kubectl get --raw /apis/apps/v1/namespaces/label/deployments/web/scale
        kubectl scale configmap app --replicas=4
        kubectl set image deployment/web nginx=nginx:1.31
        kubectl rollout restart deployment/web
        kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image} {.metadata.generation}{\"\\n\"}'
        ",
        expect![[""]],
    );
}

#[test]
fn delete_waits_for_finalizers() {
    let Some(kubectl) = session("delete") else { return };
    kubectl.check(
        r#"
        kubectl create -f configmap.yaml -f secret.yaml -f pod.yaml
        kubectl delete configmap app
        kubectl delete configmap app
        kubectl delete configmap app --ignore-not-found
        kubectl delete -f secret.yaml --wait=false
        kubectl create configmap held --from-literal=a=1
        kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
        kubectl delete configmap held --wait=true --timeout=1s
        kubectl get configmap held -o jsonpath='{.metadata.deletionTimestamp} {.metadata.deletionGracePeriodSeconds} {.metadata.finalizers}{"\n"}'
        kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'
        kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'
        kubectl get configmap held
        kubectl create configmap a --from-literal=a=1
        kubectl create configmap b --from-literal=a=1
        kubectl label configmap a b kind=two
        kubectl delete configmap -l kind=two
        kubectl delete pod web-0 --force --grace-period=0
        kubectl delete configmap,secret --all --dry-run=server | grep -v kube-root-ca
        "#,
        expect![[""]],
    );
}

#[test]
fn a_pod_on_a_node_is_deleted_gracefully() {
    let Some(kubectl) = session("grace") else { return };
    kubectl.check(
        r#"
        sed 's/^spec:/spec:\n  nodeName: n1/' pod.yaml | kubectl create -f -
        kubectl delete pod web-0 --wait=false
        kubectl get pod web-0 -o jsonpath='{.metadata.deletionTimestamp} {.metadata.deletionGracePeriodSeconds}{"\n"}'
        kubectl get pod web-0
        kubectl delete pod web-0 --grace-period=0 --force
        kubectl get pod web-0
        "#,
        expect![[""]],
    );
}
