//! replace, patch, edit, label, annotate, scale, delete.

use expect_test::expect;

use super::session;

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
        expect![[r#"
            $ kubectl replace -f configmap.yaml
            ! Error from server (NotFound): error when replacing "configmap.yaml": configmaps "app" not found
            exit 1
            $ kubectl create -f configmap.yaml
            configmap/app created
            $ kubectl get configmap app -o yaml > old.yaml
            $ sed 's/mode: fast/mode: slow/' old.yaml > new.yaml
            $ kubectl replace -f new.yaml
            configmap/app replaced
            $ kubectl replace -f old.yaml
            ! Error from server (Conflict): error when replacing "old.yaml": Operation cannot be fulfilled on configmaps "app": the object has been modified; please apply your changes to the latest version and try again
            exit 1
            $ kubectl get configmap app -o jsonpath='{.data.mode}{"\n"}'
            slow
            $ kubectl replace -f configmap.yaml
            configmap/app replaced
            $ kubectl replace --force -f configmap.yaml
            configmap "app" deleted from replace namespace
            configmap/app replaced
            $ kubectl get configmap app -o jsonpath='{.data.mode}{"\n"}'
            fast
        "#]],
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
        expect![[r#"
            $ kubectl create -f deployment.yaml -f configmap.yaml
            deployment.apps/web created
            configmap/app created
            $ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox:1.37"}]}}}}'
            deployment.apps/web patched
            $ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].name}{"\n"}'
            side nginx
            $ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}'
            deployment.apps/web patched
            $ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].name}{"\n"}'
            nginx
            $ kubectl patch deployment web --type=merge -p '{"spec":{"replicas":5,"template":{"spec":{"containers":[{"name":"only","image":"busybox:1.37"}]}}}}'
            deployment.apps/web patched
            $ kubectl get deployment web -o jsonpath='{.spec.replicas} {.spec.template.spec.containers[*].name}{"\n"}'
            5 only
            $ kubectl patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":5},{"op":"replace","path":"/spec/replicas","value":6},{"op":"add","path":"/metadata/labels/a~1b","value":"c"}]'
            deployment.apps/web patched
            $ kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.labels}{"\n"}'
            6 {"a/b":"c","app":"web"}
            $ kubectl patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":5}]'
            ! The request is invalid: the server rejected our request due to an error in our request
            exit 1
            $ kubectl patch deployment web --type=json -p '[{"op":"remove","path":"/spec/nothing"}]'
            ! The request is invalid: the server rejected our request due to an error in our request
            exit 1
            $ kubectl patch configmap app --type=merge -p '{"data":{"mode":null,"new":"1"}}'
            configmap/app patched
            $ kubectl patch configmap app --type=merge -p '{"data":{"new":"1"}}'
            configmap/app patched (no change)
            $ kubectl get configmap app -o jsonpath='{.data}{"\n"}'
            {"motd":"hello\nworld\n","new":"1"}
            $ kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"replicas":6},"spec":{"replicas":1}}'
            deployment.apps/web patched
            $ kubectl get deployment web -o jsonpath='{.status.replicas} {.spec.replicas}{"\n"}'
            6 6
            $ kubectl patch configmap app -p 'not json'
            ! Error from server (BadRequest): json: cannot unmarshal string into Go value of type map[string]interface {}
            exit 1
            $ kubectl patch configmap app -p '{"data":{"new":1}}'
            ! The request is invalid: patch: Invalid value: "map[data:map[new:1]]": cannot convert int64 to string
            exit 1
        "#]],
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
        expect![[r#"
            $ kubectl create -f configmap.yaml
            configmap/app created
            $ EDITOR='sed -i s/fast/slow/' kubectl edit configmap app
            configmap/app edited
            $ kubectl get configmap app -o jsonpath='{.data.mode}{"\n"}'
            slow
            $ EDITOR=true kubectl edit configmap app
            ! Edit cancelled, no changes made.
            $ kubectl create -f deployment.yaml
            deployment.apps/web created
            $ EDITOR='sed -i s/nginx:1.29/nginx:1.30/' kubectl edit deployment/web -o json
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {
                    "creationTimestamp": "<time>",
                    "generation": 2,
                    "labels": {
                        "app": "web"
                    },
                    "name": "web",
                    "namespace": "edit",
                    "resourceVersion": "<rv>",
                    "uid": "<uid>"
                },
                "spec": {
                    "progressDeadlineSeconds": 600,
                    "replicas": 2,
                    "revisionHistoryLimit": 10,
                    "selector": {
                        "matchLabels": {
                            "app": "web"
                        }
                    },
                    "strategy": {
                        "rollingUpdate": {
                            "maxSurge": "25%",
                            "maxUnavailable": "25%"
                        },
                        "type": "RollingUpdate"
                    },
                    "template": {
                        "metadata": {
                            "labels": {
                                "app": "web"
                            }
                        },
                        "spec": {
                            "containers": [
                                {
                                    "image": "nginx:1.30",
                                    "imagePullPolicy": "IfNotPresent",
                                    "name": "nginx",
                                    "ports": [
                                        {
                                            "containerPort": 80,
                                            "protocol": "TCP"
                                        }
                                    ],
                                    "resources": {},
                                    "terminationMessagePath": "/dev/termination-log",
                                    "terminationMessagePolicy": "File"
                                }
                            ],
                            "dnsPolicy": "ClusterFirst",
                            "restartPolicy": "Always",
                            "schedulerName": "default-scheduler",
                            "securityContext": {},
                            "terminationGracePeriodSeconds": 30
                        }
                    }
                },
                "status": {}
            }
            $ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}{"\n"}'
            nginx:1.30
            $ EDITOR='sed -i s/app:.web/app:.Web!/' kubectl edit configmap app 2>&1 | grep -v -e '^A copy of' -e '^Edit cancelled'
            error: configmaps "app" is invalid
            error: Edit cancelled, no valid changes were saved.
        "#]],
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
        expect![[r#"
            $ kubectl create -f deployment.yaml -f configmap.yaml
            deployment.apps/web created
            configmap/app created
            $ kubectl label configmap app tier=back
            ! error: 'tier' already has a value (front), and --overwrite is false
            exit 1
            $ kubectl label configmap app tier=back --overwrite
            configmap/app labeled
            $ kubectl label configmap app tier=back
            configmap/app not labeled
            $ kubectl label configmap app tier-
            configmap/app unlabeled
            $ kubectl label configmap app 'bad key=1'
            ! The ConfigMap "app" is invalid: metadata.labels: Invalid value: "bad key": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            exit 1
            $ kubectl annotate configmap app note='two words'
            configmap/app annotated
            $ kubectl annotate configmap app note-
            configmap/app annotated
            $ kubectl get configmap app -o jsonpath='{.metadata.labels} {.metadata.annotations}{"\n"}'
            {"app":"web"}
            $ kubectl scale deployment web --replicas=4
            deployment.apps/web scaled
            $ kubectl scale deployment web --replicas=5 --current-replicas=3
            ! error: Expected replicas to be 3, was 4
            exit 1
            $ kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.generation}{"\n"}'
            4 2
            $ kubectl get --raw /apis/apps/v1/namespaces/label/deployments/web/scale
            {"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web","namespace":"label","uid":"<uid>","resourceVersion":"<rv>","creationTimestamp":"<time>"},"spec":{"replicas":4},"status":{"replicas":0,"selector":"app=web"}}
            $ kubectl scale configmap app --replicas=4
            ! Error from server (NotFound): the server could not find the requested resource
            exit 1
            $ kubectl set image deployment/web nginx=nginx:1.31
            deployment.apps/web image updated
            $ kubectl rollout restart deployment/web
            deployment.apps/web restarted
            $ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image} {.metadata.generation}{"\n"}'
            nginx:1.31 4
        "#]],
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
        kubectl delete configmap held --wait=true --timeout=4s
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
        expect![[r#"
            $ kubectl create -f configmap.yaml -f secret.yaml -f pod.yaml
            configmap/app created
            secret/login created
            pod/web-0 created
            $ kubectl delete configmap app
            configmap "app" deleted from delete namespace
            $ kubectl delete configmap app
            ! Error from server (NotFound): configmaps "app" not found
            exit 1
            $ kubectl delete configmap app --ignore-not-found
            $ kubectl delete -f secret.yaml --wait=false
            secret "login" deleted from delete namespace
            $ kubectl create configmap held --from-literal=a=1
            configmap/held created
            $ kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
            configmap/held patched
            $ kubectl delete configmap held --wait=true --timeout=4s
            configmap "held" deleted from delete namespace
            ! error: timed out waiting for the condition on configmaps/held
            exit 1
            $ kubectl get configmap held -o jsonpath='{.metadata.deletionTimestamp} {.metadata.deletionGracePeriodSeconds} {.metadata.finalizers}{"\n"}'
            <time> 0 ["example.com/hold"]
            $ kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'
            ! The ConfigMap "held" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}
            exit 1
            $ kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'
            configmap/held patched
            $ kubectl get configmap held
            ! Error from server (NotFound): configmaps "held" not found
            exit 1
            $ kubectl create configmap a --from-literal=a=1
            configmap/a created
            $ kubectl create configmap b --from-literal=a=1
            configmap/b created
            $ kubectl label configmap a b kind=two
            configmap/a labeled
            configmap/b labeled
            $ kubectl delete configmap -l kind=two
            configmap "a" deleted from delete namespace
            configmap "b" deleted from delete namespace
            $ kubectl delete pod web-0 --force --grace-period=0
            pod "web-0" force deleted from delete namespace
            ! Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
            $ kubectl delete configmap,secret --all --dry-run=server | grep -v kube-root-ca
            No resources found
        "#]],
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
        expect![[r#"
            $ sed 's/^spec:/spec:\n  nodeName: n1/' pod.yaml | kubectl create -f -
            pod/web-0 created
            $ kubectl delete pod web-0 --wait=false
            pod "web-0" deleted from grace namespace
            $ kubectl get pod web-0 -o jsonpath='{.metadata.deletionTimestamp} {.metadata.deletionGracePeriodSeconds}{"\n"}'
            <time> 30
            $ kubectl get pod web-0
            NAME    READY   STATUS        RESTARTS   AGE
            web-0   0/1     Terminating   0          <age>
            $ kubectl delete pod web-0 --grace-period=0 --force
            pod "web-0" force deleted from grace namespace
            ! Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
            $ kubectl get pod web-0
            ! Error from server (NotFound): pods "web-0" not found
            exit 1
        "#]],
    );
}
