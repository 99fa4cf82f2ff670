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
        expect![[r#"
            $ kubectl get configmap nothing
            ! Error from server (NotFound): configmaps "nothing" not found
            exit 1
            $ kubectl get deployment.apps nothing
            ! Error from server (NotFound): deployments.apps "nothing" not found
            exit 1
            $ kubectl get nothings
            ! error: the server doesn't have a resource type "nothings"
            exit 1
            $ kubectl get nothings.example.com
            ! error: the server doesn't have a resource type "nothings"
            exit 1
            $ kubectl create configmap a --from-literal=k=v -n no-such-namespace
            ! error: failed to create configmap: namespaces "no-such-namespace" not found
            exit 1
            $ kubectl get cm -n no-such-namespace
            ! No resources found in no-such-namespace namespace.
            $ kubectl delete configmap nothing
            ! Error from server (NotFound): configmaps "nothing" not found
            exit 1
            $ kubectl patch configmap nothing --type=merge -p '{}'
            ! Error from server (NotFound): configmaps "nothing" not found
            exit 1
            $ kubectl get --raw /apis/example.com
            ! Error from server (NotFound): the server could not find the requested resource
            exit 1
            $ kubectl get --raw /no/such/path
            ! Error from server (NotFound): the server could not find the requested resource
            exit 1
            $ kubectl get --raw /api/v1/namespaces/missing/configmaps/nothing
            ! Error from server (NotFound): configmaps "nothing" not found
            exit 1
        "#]],
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
        expect![[r#"
            $ kubectl create --validate=strict -f unknown.yaml
            ! Error from server (BadRequest): error when creating "unknown.yaml": Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.foo", unknown field "spec.template.spec.containers[0].bar"
            exit 1
            $ kubectl create --validate=warn --dry-run=server -f unknown.yaml
            deployment.apps/web created (server dry run)
            ! Warning: unknown field "spec.foo"
            ! Warning: unknown field "spec.template.spec.containers[0].bar"
            $ kubectl create --validate=ignore --dry-run=server -f unknown.yaml
            deployment.apps/web created (server dry run)
            $ kubectl create -f bad.yaml
            ! The Deployment "Web_1" is invalid:
            ! * metadata.name: Invalid value: "Web_1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            ! * spec.replicas: Invalid value: -1: must be greater than or equal to 0
            ! * spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`
            ! * spec.template.spec.containers[0].image: Required value
            exit 1
            $ kubectl create -f type.yaml
            ! Error from server (BadRequest): error when creating "type.yaml": ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string
            exit 1
            $ kubectl create -f kind.yaml
            ! error: resource mapping not found for name: "t" namespace: "" from "kind.yaml": no matches for kind "Nothing" in version "v1"
            ! ensure CRDs are installed first
            exit 1
            $ kubectl create -f nameless.yaml
            ! The ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
            exit 1
            $ kubectl create -f twice.yaml
            configmap/t created
            $ kubectl create configmap Bad_Name --from-literal=a=b
            ! error: failed to create configmap: ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            exit 1
            $ kubectl create namespace Bad.Name
            ! The Namespace "Bad.Name" is invalid: metadata.name: Invalid value: "Bad.Name": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            exit 1
            $ kubectl create secret generic s --from-literal=a=b --type=kubernetes.io/tls
            ! error: failed to create secret Secret "s" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]
            exit 1
            $ kubectl run bad --image=' '
            ! error: Invalid image name " ": invalid reference format
            exit 1
        "#]],
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
        kubectl patch job once --type=merge -p '{"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}}' 2>&1 | sed -E 's/Invalid value: [{].*[}]:/Invalid value: <template>:/'
        "#,
        expect![[r#"
            $ kubectl create -f deployment.yaml -f pod.yaml -f job.yaml -f configmap.yaml
            deployment.apps/web created
            pod/web-0 created
            job.batch/once created
            configmap/app created
            $ kubectl patch deployment web --type=merge -p '{"spec":{"selector":{"matchLabels":{"a":"b"}}}}'
            ! The Deployment "web" is invalid:
            ! * spec.selector: Invalid value: {"matchLabels":{"a":"b","app":"web"}}: field is immutable
            ! * spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`
            exit 1
            $ kubectl patch pod web-0 --type=merge -p '{"metadata":{"name":"other"}}'
            ! Error from server (BadRequest): the name of the object (other) does not match the name on the URL (web-0)
            exit 1
            $ kubectl patch pod web-0 --type=merge -p '{"metadata":{"uid":"other"}}'
            ! The Pod "web-0" is invalid: metadata.uid: Invalid value: "other": field is immutable
            exit 1
            $ kubectl patch configmap app --type=merge -p '{"immutable":true}'
            configmap/app patched
            $ kubectl patch configmap app --type=merge -p '{"data":{"mode":"slow"}}'
            ! The ConfigMap "app" is invalid: data: Forbidden: field is immutable when `immutable` is set
            exit 1
            $ kubectl patch configmap app --type=merge -p '{"immutable":false}'
            ! The ConfigMap "app" is invalid: immutable: Forbidden: field is immutable when `immutable` is set
            exit 1
            $ kubectl patch configmap app --type=merge -p '{"metadata":{"resourceVersion":"1"}}'
            ! Error from server (Conflict): Operation cannot be fulfilled on configmaps "app": the object has been modified; please apply your changes to the latest version and try again
            exit 1
            $ kubectl patch job once --type=merge -p '{"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}}' 2>&1 | sed -E 's/Invalid value: [{].*[}]:/Invalid value: <template>:/'
            The Job "once" is invalid: spec.template: Invalid value: <template>: field is immutable
        "#]],
    );
}
