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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
    );
}

#[test]
fn describe_reads_what_it_needs() {
    let Some(kubectl) = session("describe") else { return };
    kubectl.run("kubectl create -f configmap.yaml -f pod.yaml -f service.yaml");
    kubectl.check(
        "
        kubectl describe configmap app
        kubectl describe pod web-0
        kubectl describe service web
        ",
        expect![[""]],
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
        kubectl get service kubernetes -n default -o name
        ",
        expect![[""]],
    );
}
