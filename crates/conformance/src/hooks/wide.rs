//! One case of everything that is judged: verbs, subresources, objects that are answered and not stored,
//! custom resources in versions that are served and in one that is not.
//!
//! In: nothing. Out: a definition, and a case. Never: a draw; what needs a node; a whole Scale and a lease
//! without its revision, of which ours makes more, or says more, before it asks anybody; a deletion at once,
//! about which kube-apiserver asks twice.

use http::Method;
use serde_json::{Value, json};

use super::draw::{HookCase, HookStep};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const NAME: &str = "wide";

/// Three versions of one kind: `v1` is stored and has a scale, `v2` has none, and `v3` is not served.
pub fn wide_definition() -> Value {
    let version = |name: &str, served: bool| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "name": name, "served": served, "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
        })
    };
    let mut first = version("v1", true);
    first["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let mut third = version("v3", false);
    third["subresources"] = first["subresources"].clone();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "wides.wide.example.com"},
        "spec": {
            "group": "wide.example.com", "scope": "Namespaced",
            "names": {"plural": "wides", "singular": "wide", "kind": "Wide"},
            "versions": [first, version("v2", true), third],
        },
    })
}

/// The case.
pub fn wide_case() -> HookCase {
    let groups = json!([
        "",
        "apps",
        "batch",
        "policy",
        "autoscaling",
        "certificates.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "coordination.k8s.io",
        "events.k8s.io",
    ]);
    let all = json!({"apiGroups": groups, "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]});
    let of = |versions: &str, resources: Value| {
        json!({
            "apiGroups": ["wide.example.com"], "apiVersions": [versions], "resources": resources,
            "operations": ["*"],
        })
    };
    let pods = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", "pods/*"],
        "operations": ["CREATE", "UPDATE", "CONNECT"],
    });
    let hook = |name: &str, sort: &str, rules: Value| {
        json!({
            "name": format!("{name}.wide.example.com"), "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
            "clientConfig": {"url": format!("$HOOK/{NAME}-{sort}{name}/allow"), "caBundle": "$CA"},
            "namespaceSelector": {"matchLabels": {"case": NAME}}, "rules": rules,
        })
    };
    let configuration = |sort: &str| {
        let kind = if sort == "mutating" { "Mutating" } else { "Validating" };
        let letter = &sort[..1];
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": format!("wide-{sort}")},
            "webhooks": [
                hook("all", letter, json!([all])),
                hook("pods", letter, json!([pods])),
                hook("unserved", letter, json!([of("v3", json!(["*/*"]))])),
                hook("scale", letter, json!([of("v2", json!(["wides/scale"]))])),
                hook("status", letter, json!([of("v2", json!(["wides/status"]))])),
                hook("plain", letter, json!([of("v2", json!(["wides"]))])),
            ],
        })
    };
    HookCase {
        name: NAME.to_owned(),
        labels: json!({"case": NAME}),
        configurations: vec![
            ("mutating", configuration("mutating")),
            ("validating", configuration("validating")),
        ],
        steps: steps(),
    }
}

fn steps() -> Vec<HookStep> {
    let step = |method: Method, path: &str, content_type: &'static str, body: Value| HookStep {
        method,
        path: path.replace("$NS", &format!("namespaces/{NAME}")),
        content_type,
        body,
    };
    let post = |path: &str, body: Value| step(Method::POST, path, JSON, body);
    let put = |path: &str, body: Value| step(Method::PUT, path, JSON, body);
    let merge = |path: &str, body: Value| step(Method::PATCH, path, MERGE, body);
    let delete = |path: &str, body: Value| step(Method::DELETE, path, JSON, body);
    let meta = |name: &str| json!({"name": name});
    let pod = |metadata: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false},
        })
    };
    let wide = |version: &str, name: &str| {
        json!({
            "apiVersion": format!("wide.example.com/{version}"), "kind": "Wide", "metadata": meta(name),
            "spec": {"replicas": 1},
        })
    };
    let (pods, wides1, wides2) =
        ("/api/v1/$NS/pods", "/apis/wide.example.com/v1/$NS/wides", "/apis/wide.example.com/v2/$NS/wides");
    let one = |of: &str| format!("{pods}/a{of}");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("d"),
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    let deployments = "/apis/apps/v1/$NS/deployments";
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta("l"), "spec": {}});
    let leases = "/apis/coordination.k8s.io/v1/$NS/leases";
    vec![
        post("/api/v1/$NS/serviceaccounts", json!({"metadata": meta("default")})),
        post(
            "/api/v1/$NS/serviceaccounts/default/token",
            json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {"audiences": ["x"]}}),
        ),
        post(
            "/api/v1/$NS/serviceaccounts/default/token?dryRun=All",
            json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {"audiences": ["x"]}}),
        ),
        post(pods, pod(meta("a"))),
        post(pods, pod(json!({"generateName": "gen-"}))),
        post(&format!("{pods}?dryRun=All&fieldManager=m"), pod(meta("z"))),
        step(
            Method::PATCH,
            &one("/ephemeralcontainers"),
            STRATEGIC,
            json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}),
        ),
        step(
            Method::PATCH,
            &one("/resize"),
            STRATEGIC,
            json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}),
        ),
        merge(&one("/status"), json!({"status": {"message": "m"}})),
        merge(&one(""), json!({"metadata": {"labels": {"x": "y"}}})),
        step(
            Method::PATCH,
            &one("?fieldManager=s&force=true"),
            APPLY,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "annotations": {"s": "t"}}}),
        ),
        post(
            &one("/eviction?dryRun=All"),
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta("a")}),
        ),
        delete(&format!("{pods}/nowhere"), Value::Null),
        post(deployments, deployment.clone()),
        merge(&format!("{deployments}/d/scale?dryRun=All"), json!({"spec": {"replicas": 4}})),
        step(
            Method::PATCH,
            &format!("{deployments}/d/scale?fieldManager=s&force=true"),
            APPLY,
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": NAME}, "spec": {"replicas": 5}}),
        ),
        merge(&format!("{deployments}/d/status"), json!({"status": {"observedGeneration": 1}})),
        step(Method::PATCH, &format!("{deployments}/e?fieldManager=s"), APPLY, {
            let mut made = deployment;
            made["metadata"] = meta("e");
            made
        }),
        delete(&format!("{deployments}/e?propagationPolicy=Orphan"), Value::Null),
        put(&format!("{leases}/l"), lease),
        post(
            "/api/v1/$NS/events",
            json!({"metadata": meta("e"), "involvedObject": {"kind": "Pod", "namespace": NAME, "name": "a"}, "reason": "r", "type": "Normal"}),
        ),
        post(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            json!({"spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
        post(
            "/apis/authorization.k8s.io/v1/$NS/localsubjectaccessreviews",
            json!({"metadata": {"namespace": NAME}, "spec": {"user": "u", "resourceAttributes": {"namespace": NAME, "verb": "get", "resource": "pods"}}}),
        ),
        post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
        post("/apis/authentication.k8s.io/v1/tokenreviews", json!({"spec": {"token": "nobody"}})),
        post("/api/v1/namespaces", json!({"metadata": {"name": "wide-other", "labels": {"case": NAME}}})),
        merge("/api/v1/namespaces/wide-other", json!({"metadata": {"labels": {"x": "y"}}})),
        merge("/api/v1/namespaces/wide-other/status", json!({"metadata": {"annotations": {"x": "y"}}})),
        put(
            "/api/v1/namespaces/wide-other/finalize",
            json!({"metadata": meta("wide-other"), "spec": {"finalizers": ["kubernetes"]}}),
        ),
        merge("/api/v1/namespaces/wide-other", json!({"metadata": {"labels": {"case": null}}})),
        delete("/api/v1/namespaces/wide-other?dryRun=All", Value::Null),
        post("/api/v1/nodes", json!({"metadata": meta("wide-node")})),
        merge("/api/v1/nodes/wide-node/status", json!({"status": {"phase": "Running"}})),
        delete("/api/v1/nodes/wide-node", Value::Null),
        post(wides1, wide("v1", "a")),
        post(wides2, wide("v2", "b")),
        merge(&format!("{wides2}/a"), json!({"spec": {"x": 1}})),
        merge(&format!("{wides1}/a/scale"), json!({"spec": {"replicas": 2}})),
        merge(&format!("{wides1}/a/status"), json!({"status": {"x": 1}})),
        step(Method::PATCH, &format!("{wides1}/c?fieldManager=s"), APPLY, wide("v1", "c")),
        delete(&format!("{wides1}/b"), Value::Null),
        delete(wides2, Value::Null),
    ]
}
