//! What kubectl says when something is wrong: the server's words.

use expect_test::expect;

use super::session;

#[test]
fn what_is_not_there() {
    let Some(kubectl) = session("missing") else { return };
    kubectl.check(
        "
        kubectl get configmap nothing
        kubectl get deployment.apps nothing
        kubectl get nothings
        kubectl get nothings.example.com
        kubectl create configmap a --from-literal=k=v -n no-such-namespace
        kubectl get cm -n no-such-namespace
        kubectl delete configmap nothing
        kubectl patch configmap nothing --type=merge -p '{}'
        kubectl get --raw /apis/example.com
        kubectl get --raw /no/such/path
        kubectl get --raw /api/v1/namespaces/missing/configmaps/nothing
        ",
        expect![[""]],
    );
}

#[test]
fn what_is_not_valid() {
    let Some(kubectl) = session("invalid") else { return };
    kubectl.file(
        "unknown.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  foo: 1\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n      containers:\n      - {name: c, image: i, bar: 2}\n",
    );
    kubectl.file(
        "bad.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: Web_1}\nspec:\n  replicas: -1\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: c}}\n    spec:\n      containers:\n      - {name: c}\n",
    );
    kubectl.file("type.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: t}\ndata: {a: 1}\n");
    kubectl.file("kind.yaml", "apiVersion: v1\nkind: Nothing\nmetadata: {name: t}\n");
    kubectl.file("nameless.yaml", "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n");
    kubectl.file(
        "twice.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: t}\ndata: {a: b}\ndata: {a: c}\n",
    );
    kubectl.check(
        "
        kubectl create --validate=strict -f unknown.yaml
        kubectl create --validate=warn --dry-run=server -f unknown.yaml
        kubectl create --validate=ignore --dry-run=server -f unknown.yaml
        kubectl create -f bad.yaml
        kubectl create -f type.yaml
        kubectl create -f kind.yaml
        kubectl create -f nameless.yaml
        kubectl create -f twice.yaml
        kubectl create configmap Bad_Name --from-literal=a=b
        kubectl create namespace Bad.Name
        kubectl create secret generic s --from-literal=a=b --type=kubernetes.io/tls
        kubectl run bad --image=' '
        ",
        expect![[""]],
    );
}

#[test]
fn what_may_not_change() {
    let Some(kubectl) = session("immutable") else { return };
    kubectl.check(
        r#"
        kubectl create -f deployment.yaml -f pod.yaml -f job.yaml -f configmap.yaml
        kubectl patch deployment web --type=merge -p '{"spec":{"selector":{"matchLabels":{"a":"b"}}}}'
        kubectl patch pod web-0 --type=merge -p '{"metadata":{"name":"other"}}'
        kubectl patch pod web-0 --type=merge -p '{"metadata":{"uid":"other"}}'
        kubectl patch configmap app --type=merge -p '{"immutable":true}'
        kubectl patch configmap app --type=merge -p '{"data":{"mode":"slow"}}'
        kubectl patch configmap app --type=merge -p '{"immutable":false}'
        kubectl patch configmap app --type=merge -p '{"metadata":{"resourceVersion":"1"}}'
        kubectl patch job once --type=merge -p '{"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}}'
        "#,
        expect![[""]],
    );
}
