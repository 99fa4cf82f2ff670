//! get in all its forms: tables, documents, selectors, chunks, raw paths.

use expect_test::expect;

use super::session;

#[test]
fn tables_of_the_common_kinds() {
    let Some(kubectl) = session("tables") else { return };
    kubectl.run("kubectl apply -f configmap.yaml -f secret.yaml -f pod.yaml -f deployment.yaml -f service.yaml -f job.yaml");
    kubectl.check(
        "
        kubectl get configmap app
        kubectl get secret login
        kubectl get pod
        kubectl get pod -o wide
        kubectl get pod --show-labels
        kubectl get pod -L app,tier
        kubectl get deploy
        kubectl get deploy -o wide
        kubectl get svc
        kubectl get svc -o wide
        kubectl get job
        kubectl get all
        kubectl get pod,svc,configmap/app
        kubectl get pod --no-headers
        kubectl get pod -A --field-selector metadata.namespace=tables
        kubectl get rs
        kubectl get namespace tables kube-system
        ",
        expect![[r#"
            $ kubectl get configmap app
            NAME   DATA   AGE
            app    2      <age>
            $ kubectl get secret login
            NAME    TYPE     DATA   AGE
            login   Opaque   2      <age>
            $ kubectl get pod
            NAME    READY   STATUS    RESTARTS   AGE
            web-0   0/1     Pending   0          <age>
            $ kubectl get pod -o wide
            NAME    READY   STATUS    RESTARTS   AGE   IP       NODE     NOMINATED NODE   READINESS GATES
            web-0   0/1     Pending   0          <age> <none>   <none>   <none>           <none>
            $ kubectl get pod --show-labels
            NAME    READY   STATUS    RESTARTS   AGE   LABELS
            web-0   0/1     Pending   0          <age> app=web
            $ kubectl get pod -L app,tier
            NAME    READY   STATUS    RESTARTS   AGE   APP   TIER
            web-0   0/1     Pending   0          <age> web
            $ kubectl get deploy
            NAME   READY   UP-TO-DATE   AVAILABLE   AGE
            web    0/2     0            0           <age>
            $ kubectl get deploy -o wide
            NAME   READY   UP-TO-DATE   AVAILABLE   AGE   CONTAINERS   IMAGES       SELECTOR
            web    0/2     0            0           <age> nginx        nginx:1.29   app=web
            $ kubectl get svc
            NAME   TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
            web    ClusterIP   None         <none>        80/TCP    <age>
            $ kubectl get svc -o wide
            NAME   TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE   SELECTOR
            web    ClusterIP   None         <none>        80/TCP    <age> app=web
            $ kubectl get job
            NAME   STATUS    COMPLETIONS   DURATION   AGE
            once   Running   0/1                      <age>
            $ kubectl get all
            NAME        READY   STATUS    RESTARTS   AGE
            pod/web-0   0/1     Pending   0          <age>

            NAME          TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
            service/web   ClusterIP   None         <none>        80/TCP    <age>

            NAME                  READY   UP-TO-DATE   AVAILABLE   AGE
            deployment.apps/web   0/2     0            0           <age>

            NAME             STATUS    COMPLETIONS   DURATION   AGE
            job.batch/once   Running   0/1                      <age>
            $ kubectl get pod,svc,configmap/app
            ! error: arguments in resource/name form must have a single resource and name
            exit 1
            $ kubectl get pod --no-headers
            web-0   0/1   Pending   0     <age>
            $ kubectl get pod -A --field-selector metadata.namespace=tables
            NAMESPACE   NAME    READY   STATUS    RESTARTS   AGE
            tables      web-0   0/1     Pending   0          <age>
            $ kubectl get rs
            ! No resources found in tables namespace.
            $ kubectl get namespace tables kube-system
            NAME          STATUS   AGE
            tables        Active   <age>
            kube-system   Active   <age>
        "#]],
    );
}

#[test]
fn documents_and_templates() {
    let Some(kubectl) = session("documents") else { return };
    kubectl.run("kubectl create -f configmap.yaml -f secret.yaml -f pod.yaml");
    kubectl.check(
        r#"
        kubectl get configmap app -o yaml
        kubectl get configmap app -o json
        kubectl get configmap -l app=web -o yaml
        kubectl get pod,configmap -l app=web -o name
        kubectl get pod -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image,NODE:.spec.nodeName
        kubectl get pod -o jsonpath='{range .items[*]}{.metadata.name}={.status.phase},{.status.qosClass}{"\n"}{end}'
        kubectl get pod web-0 -o go-template='{{.metadata.name}}{{"\n"}}'
        kubectl get configmap app -o jsonpath-as-json='{.data}'
        kubectl get configmap -o json -l app=none
        "#,
        expect![[r#"
            $ kubectl get configmap app -o yaml
            apiVersion: v1
            data:
              mode: fast
              motd: |
                hello
                world
            kind: ConfigMap
            metadata:
              creationTimestamp: "<time>"
              labels:
                app: web
                tier: front
              name: app
              namespace: documents
              resourceVersion: "<rv>"
              uid: <uid>
            $ kubectl get configmap app -o json
            {
                "apiVersion": "v1",
                "data": {
                    "mode": "fast",
                    "motd": "hello\nworld\n"
                },
                "kind": "ConfigMap",
                "metadata": {
                    "creationTimestamp": "<time>",
                    "labels": {
                        "app": "web",
                        "tier": "front"
                    },
                    "name": "app",
                    "namespace": "documents",
                    "resourceVersion": "<rv>",
                    "uid": "<uid>"
                }
            }
            $ kubectl get configmap -l app=web -o yaml
            apiVersion: v1
            items:
            - apiVersion: v1
              data:
                mode: fast
                motd: |
                  hello
                  world
              kind: ConfigMap
              metadata:
                creationTimestamp: "<time>"
                labels:
                  app: web
                  tier: front
                name: app
                namespace: documents
                resourceVersion: "<rv>"
                uid: <uid>
            kind: List
            metadata:
              resourceVersion: ""
            $ kubectl get pod,configmap -l app=web -o name
            pod/web-0
            configmap/app
            $ kubectl get pod -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image,NODE:.spec.nodeName
            NAME    IMAGE        NODE
            web-0   nginx:1.29   <none>
            $ kubectl get pod -o jsonpath='{range .items[*]}{.metadata.name}={.status.phase},{.status.qosClass}{"\n"}{end}'
            web-0=Pending,Burstable
            $ kubectl get pod web-0 -o go-template='{{.metadata.name}}{{"\n"}}'
            web-0
            $ kubectl get configmap app -o jsonpath-as-json='{.data}'
            [
                {
                    "mode": "fast",
                    "motd": "hello\nworld\n"
                }
            ]
            $ kubectl get configmap -o json -l app=none
            {
                "apiVersion": "v1",
                "items": [],
                "kind": "List",
                "metadata": {
                    "resourceVersion": ""
                }
            }
        "#]],
    );
}

#[test]
fn selectors() {
    let Some(kubectl) = session("selectors") else { return };
    for (name, labels) in
        [("a", "app=web,tier=front"), ("b", "app=web,tier=back"), ("c", "app=db"), ("d", "other=1")]
    {
        kubectl.run(&format!("kubectl create configmap {name} --from-literal=k=v"));
        kubectl.run(&format!("kubectl label configmap {name} {}", labels.replace(',', " ")));
    }
    kubectl.run("kubectl create -f pod.yaml");
    kubectl.run("sed 's/web-0/web-1/; s/^spec:/spec:\\n  nodeName: n1/' pod.yaml | kubectl create -f -");
    kubectl.check(
        "
        kubectl get cm -o name -l app
        kubectl get cm -o name -l app=web
        kubectl get cm -o name -l app==web,tier!=front
        kubectl get cm -o name -l 'app in (web,db)'
        kubectl get cm -o name -l 'app notin (web),!other' | grep -v kube-root-ca
        kubectl get cm -o name -l '!app' | grep -v kube-root-ca
        kubectl get cm -o name -l app=none
        kubectl get cm -o name -l 'app in'
        kubectl get cm -o name --field-selector metadata.name=a
        kubectl get cm -o name --field-selector metadata.name!=a,metadata.name!=kube-root-ca.crt -l app
        kubectl get pod -o name --field-selector spec.nodeName=n1
        kubectl get pod -o name --field-selector spec.nodeName=,status.phase=Pending
        kubectl get pod -o name --field-selector status.phase!=Pending
        kubectl get pod -o name --field-selector spec.restartPolicy=Always
        kubectl get pod -o name --field-selector spec.hostname=x
        kubectl get cm -o name --field-selector data.k=v
        kubectl get secret -o name --field-selector type=Opaque
        kubectl get pod --selector app=web --field-selector spec.nodeName=n1 -o name
        ",
        expect![[r#"
            $ kubectl get cm -o name -l app
            configmap/a
            configmap/b
            configmap/c
            $ kubectl get cm -o name -l app=web
            configmap/a
            configmap/b
            $ kubectl get cm -o name -l app==web,tier!=front
            configmap/b
            $ kubectl get cm -o name -l 'app in (web,db)'
            configmap/a
            configmap/b
            configmap/c
            $ kubectl get cm -o name -l 'app notin (web),!other' | grep -v kube-root-ca
            configmap/c
            $ kubectl get cm -o name -l '!app' | grep -v kube-root-ca
            configmap/d
            $ kubectl get cm -o name -l app=none
            $ kubectl get cm -o name -l 'app in'
            ! Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector "app in", field selector "": unable to parse requirement: found '' expected: '('
            exit 1
            $ kubectl get cm -o name --field-selector metadata.name=a
            configmap/a
            $ kubectl get cm -o name --field-selector metadata.name!=a,metadata.name!=kube-root-ca.crt -l app
            configmap/b
            configmap/c
            $ kubectl get pod -o name --field-selector spec.nodeName=n1
            pod/web-1
            $ kubectl get pod -o name --field-selector spec.nodeName=,status.phase=Pending
            pod/web-0
            $ kubectl get pod -o name --field-selector status.phase!=Pending
            $ kubectl get pod -o name --field-selector spec.restartPolicy=Always
            pod/web-0
            pod/web-1
            $ kubectl get pod -o name --field-selector spec.hostname=x
            ! Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "", field selector "spec.hostname=x": field label not supported: spec.hostname
            exit 1
            $ kubectl get cm -o name --field-selector data.k=v
            ! Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector "", field selector "data.k=v": "data.k" is not a known field selector: only "metadata.name", "metadata.namespace"
            exit 1
            $ kubectl get secret -o name --field-selector type=Opaque
            $ kubectl get pod --selector app=web --field-selector spec.nodeName=n1 -o name
            pod/web-1
        "#]],
    );
}

#[test]
fn chunks_are_put_together() {
    let Some(kubectl) = session("chunks") else { return };
    let many: String = (0..30)
        .map(|n| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: cm-{n:02}, labels: {{many: \"\"}}}}\n"))
        .collect();
    kubectl.file("many.yaml", &many);
    kubectl.run("kubectl create -f many.yaml");
    kubectl.check(
        r#"
        kubectl get cm -l many --chunk-size=7 -o name | wc -l
        kubectl get cm -l many --chunk-size=7 -o name | sort -u | wc -l
        kubectl get cm --chunk-size=7 -o name | grep cm- | wc -l
        kubectl get cm --chunk-size=7 | grep cm- | wc -l
        kubectl get --raw '/api/v1/namespaces/chunks/configmaps?limit=29&labelSelector=many' | grep -o '"remainingItemCount"'
        kubectl get cm -l many --sort-by=.metadata.name -o name | tail -1
        kubectl delete cm -l many | wc -l
        "#,
        expect![[r#"
            $ kubectl get cm -l many --chunk-size=7 -o name | wc -l
            30
            $ kubectl get cm -l many --chunk-size=7 -o name | sort -u | wc -l
            30
            $ kubectl get cm --chunk-size=7 -o name | grep cm- | wc -l
            30
            $ kubectl get cm --chunk-size=7 | grep cm- | wc -l
            30
            $ kubectl get --raw '/api/v1/namespaces/chunks/configmaps?limit=29&labelSelector=many' | grep -o '"remainingItemCount"'
            exit 1
            $ kubectl get cm -l many --sort-by=.metadata.name -o name | tail -1
            configmap/cm-29
            $ kubectl delete cm -l many | wc -l
            30
        "#]],
    );
}

#[test]
fn events_are_shown_as_kubectl_shows_them() {
    let Some(kubectl) = session("events") else { return };
    kubectl.run("kubectl create -f event.yaml");
    kubectl.check(
        "
        kubectl get events -o custom-columns=TYPE:.type,REASON:.reason,OBJECT:.involvedObject.name,MESSAGE:.message
        kubectl get events
        kubectl get events -o wide
        kubectl get events --field-selector involvedObject.name=web-0,type=Normal -o name
        kubectl get events --field-selector reason=Killed -o name
        kubectl get events.v1.events.k8s.io -o custom-columns=TYPE:.type,REASON:.reason,OBJECT:.regarding.name,NOTE:.note
        kubectl events --for pod/web-0 | tail -1
        ",
        expect![[r#"
            $ kubectl get events -o custom-columns=TYPE:.type,REASON:.reason,OBJECT:.involvedObject.name,MESSAGE:.message
            TYPE     REASON    OBJECT   MESSAGE
            Normal   Started   web-0    Started container nginx
            $ kubectl get events
            LAST SEEN   TYPE     REASON    OBJECT      MESSAGE
            <unknown>   Normal   Started   pod/web-0   Started container nginx
            $ kubectl get events -o wide
            LAST SEEN   TYPE     REASON    OBJECT      SUBOBJECT   SOURCE        MESSAGE                   FIRST SEEN   COUNT   NAME
            <unknown>   Normal   Started   pod/web-0               kubelet, n1   Started container nginx   <unknown>    1       web-0.1
            $ kubectl get events --field-selector involvedObject.name=web-0,type=Normal -o name
            event/web-0.1
            $ kubectl get events --field-selector reason=Killed -o name
            $ kubectl get events.v1.events.k8s.io -o custom-columns=TYPE:.type,REASON:.reason,OBJECT:.regarding.name,NOTE:.note
            TYPE     REASON    OBJECT   NOTE
            Normal   Started   web-0    Started container nginx
            $ kubectl events --for pod/web-0 | tail -1
            <unknown>   Normal   Started   Pod/web-0   Started container nginx
        "#]],
    );
}

#[test]
fn describe_reads_what_it_needs() {
    let Some(kubectl) = session("describe") else { return };
    // The families of a Service's addresses are left out: they come with their allocation, which is issue 4.
    kubectl.run("kubectl create -f configmap.yaml -f pod.yaml -f service.yaml");
    kubectl.check(
        "
        kubectl describe configmap app
        kubectl describe pod web-0
        kubectl describe service web | grep -v '^IP Famil'
        ",
        expect![[r#"
            $ kubectl describe configmap app
            Name:         app
            Namespace:    describe
            Labels:       app=web
                          tier=front
            Annotations:  <none>

            Data
            ====
            mode:
            ----
            fast

            motd:
            ----
            hello
            world



            BinaryData
            ====

            Events:  <none>
            $ kubectl describe pod web-0
            Name:         web-0
            Namespace:    describe
            Priority:     0
            Node:         <none>
            Labels:       app=web
            Annotations:  <none>
            Status:       Pending
            IP:
            IPs:          <none>
            Containers:
              nginx:
                Image:      nginx:1.29
                Port:       80/TCP
                Host Port:  0/TCP
                Requests:
                  cpu:     100m
                  memory:  64Mi
                Environment:
                  MODE:      fast
                Mounts:      <none>
            Volumes:         <none>
            QoS Class:       Burstable
            Node-Selectors:  <none>
            Tolerations:     node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
                             node.kubernetes.io/unreachable:NoExecute op=Exists for 300s
            Events:          <none>
            $ kubectl describe service web | grep -v '^IP Famil'
            Name:                     web
            Namespace:                describe
            Labels:                   app=web
            Annotations:              <none>
            Selector:                 app=web
            Type:                     ClusterIP
            IP:                       None
            IPs:                      None
            Port:                     http  80/TCP
            TargetPort:               8080/TCP
            Endpoints:                <none>
            Session Affinity:         None
            Internal Traffic Policy:  Cluster
            Events:                   <none>
        "#]],
    );
}

#[test]
fn namespaces_exist_from_the_start() {
    let Some(kubectl) = session("namespaces") else { return };
    kubectl.check(
        "
        kubectl get namespace default kube-system kube-public kube-node-lease -o custom-columns=NAME:.metadata.name,PHASE:.status.phase,LABEL:.metadata.labels
        kubectl create namespace namespaces-more
        kubectl get namespace namespaces-more -o yaml
        ",
        expect![[r#"
            $ kubectl get namespace default kube-system kube-public kube-node-lease -o custom-columns=NAME:.metadata.name,PHASE:.status.phase,LABEL:.metadata.labels
            NAME              PHASE    LABEL
            default           Active   map[kubernetes.io/metadata.name:default]
            kube-system       Active   map[kubernetes.io/metadata.name:kube-system]
            kube-public       Active   map[kubernetes.io/metadata.name:kube-public]
            kube-node-lease   Active   map[kubernetes.io/metadata.name:kube-node-lease]
            $ kubectl create namespace namespaces-more
            namespace/namespaces-more created
            $ kubectl get namespace namespaces-more -o yaml
            apiVersion: v1
            kind: Namespace
            metadata:
              creationTimestamp: "<time>"
              labels:
                kubernetes.io/metadata.name: namespaces-more
              name: namespaces-more
              resourceVersion: "<rv>"
              uid: <uid>
            spec:
              finalizers:
              - kubernetes
            status:
              phase: Active
        "#]],
    );
}
