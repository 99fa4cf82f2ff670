//! What whoever operates a server asks of it, ours and kube-apiserver's: the pages about the process, and how
//! its health checks went.

use std::collections::BTreeSet;
use std::time::Duration;

use forebay_clients::https::Call;
use forebay_clients::needs;
use forebay_conformance::pair::{RawAnswer, Request};
use forebay_conformance::{Pair, Peer};
use forebay_rt::Clock;
use http::Method;
use serde_json::{Value, json};

async fn get(peer: &Peer, path: &str, accept: &str) -> RawAnswer {
    peer.ask(&Request::new(Method::GET, path.to_owned()), accept).await.expect("an answer")
}

fn text(answer: &RawAnswer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// A page as JSON, without what is the process's own.
fn page(answer: &RawAnswer) -> Value {
    let mut page: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| json!(text(answer)));
    for own in ["startTime", "uptimeSeconds", "goVersion", "paths", "flags"] {
        if !page[own].is_null() {
            page[own] = json!("<own>");
        }
    }
    page
}

const ACCEPTED: [&str; 12] = [
    "application/json;as=Statusz;g=config.k8s.io;v=v1beta1",
    "application/json;as=Statusz;g=config.k8s.io;v=v1alpha1",
    "application/json;as=Flagz;g=config.k8s.io;v=v1beta1",
    "application/json;as=Flagz;g=config.k8s.io;v=v1alpha1",
    "application/json;as=Flagz;g=config.k8s.io;v=v1",
    "application/json;as=Flagz;v=v1beta1",
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "text/html",
    "text/plain;as=Flagz;g=config.k8s.io;v=v1beta1",
    "application/json;as=Flagz;g=config.k8s.io;v=v1beta1;stream=watch",
    "text/html;q=0.9,application/json;as=Statusz;g=config.k8s.io;v=v1beta1;q=0.1",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_about_the_process_are_alike() {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    let mut faults = Vec::new();
    for path in ["/statusz", "/flagz"] {
        for accept in ACCEPTED {
            let [ours, theirs] = [get(&pair.ours, path, accept).await, get(&pair.theirs, path, accept).await];
            let [one, other] = [&ours, &theirs].map(|it| (it.code, it.warnings.clone(), page(it)));
            if one != other {
                faults.push(format!("{path} {accept}\n  ours   {one:?}\n  theirs {other:?}"));
            }
        }
        // What separates a name from its value is another one each time.
        let lines = |answer: RawAnswer| -> Vec<String> {
            let known = ["Started", "Up", "Go version", "Binary version", "Emulation version", "Paths"];
            let text = text(&answer);
            let lines = text.lines().map(|line| {
                let name = known.iter().find(|name| line.starts_with(**name));
                name.map_or(line, |name| *name).to_owned()
            });
            lines.take_while(|line| path == "/statusz" || line.contains(' ') || line.is_empty()).collect()
        };
        for accept in ["*/*", "text/plain", "text/*"] {
            let [ours, theirs] =
                [lines(get(&pair.ours, path, accept).await), lines(get(&pair.theirs, path, accept).await)];
            if ours.first() != theirs.first() || ours.get(..3) != theirs.get(..3) {
                faults.push(format!("{path} {accept}\n  ours   {ours:?}\n  theirs {theirs:?}"));
            }
            if path == "/statusz" && ours != theirs {
                faults.push(format!("{path} {accept}\n  ours   {ours:?}\n  theirs {theirs:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_checks_are_counted_alike() {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    let mut said = Vec::new();
    for peer in [&pair.ours, &pair.theirs] {
        for path in ["/livez", "/livez", "/readyz?verbose", "/healthz?exclude=etcd", "/livez/etcd"] {
            assert_eq!(get(peer, path, "*/*").await.code, 200, "{path}");
        }
        let answer = get(peer, "/metrics/slis", "*/*").await;
        assert_eq!(answer.code, 200);
        let text = text(&answer);
        // Of checks that both have; how often others have asked is not known.
        let series: BTreeSet<String> = text
            .lines()
            .filter(|line| ["etcd", "ping"].iter().any(|name| line.contains(&format!("name=\"{name}\""))))
            // One may have been asked before its store was there.
            .filter(|line| !line.contains("status=\"error\""))
            .filter_map(|line| line.rsplit_once(' ').map(|(series, _)| series.to_owned()))
            .collect();
        let types: BTreeSet<String> =
            text.lines().filter(|line| line.starts_with("# TYPE")).map(str::to_owned).collect();
        said.push((series, types));
    }
    assert_eq!(said[0], said[1], "ours, and theirs");
    assert!(said[0].0.len() >= 8, "{:?}", said[0]);
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const CONNECTED: [&str; 6] =
    ["pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy"];
/// What a policy sees of a connection.
const SEEN: &str = "request.operation + ' ' + request.kind.kind + ' ' + request.resource.resource + '/' + \
     request.subResource + ' ' + request.name + (has(object.stdin) ? ' in' : '') + (has(object.tty) ? ' tty' : '') + \
     (has(object.container) ? ' of ' + object.container : '') + (has(object.path) ? ' path ' + object.path : '') + \
     (has(object.ports) ? ' ports ' + string(object.ports.size()) : '') + \
     (has(object.command) && object.command != null ? ' ' + object.command.join(',') : '') + \
     (request.options == null ? '' : ' with options') + (oldObject == null ? '' : ' instead')";

/// Denies every connection, and says what it saw.
async fn deny_connections(peer: &Peer) {
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": CONNECTED });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "alone" },
        "spec": {
            "matchConstraints": { "resourceRules": [rule] },
            "validations": [{ "expression": "false", "messageExpression": SEEN, "reason": "Forbidden" }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "alone" },
        "spec": { "policyName": "alone", "validationActions": ["Deny"] },
    });
    for (kind, object) in [("ies", policy), ("ybindings", binding)] {
        let made =
            peer.send(Method::POST, &format!("{policies}{kind}"), Some(&object)).await.expect("an answer");
        assert_eq!(made.code, 201, "{}", made.body);
    }
    // Theirs is in force a while after its writer is answered.
    for _ in 0..200 {
        let asked = peer.send(Method::GET, &format!("{PODS}/ready/attach"), None).await.expect("an answer");
        if asked.body["reason"] == "Forbidden" {
            return;
        }
        Clock::system().sleep(Duration::from_millis(50)).await;
    }
    panic!("the policy is not in force");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_judged_alike() {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    for peer in [&pair.ours, &pair.theirs] {
        deny_connections(peer).await;
    }
    let requests = [
        (Method::POST, format!("{PODS}/p/exec?command=sh&command=-c&stdin=true&tty=1&container=c")),
        (Method::GET, format!("{PODS}/p/exec?stdin=false&stdout=true")),
        (Method::POST, format!("{PODS}/p/attach?stdin&tty=0")),
        (Method::POST, format!("{PODS}/p/portforward?ports=80,81&ports=82")),
        (Method::POST, format!("{PODS}/p/portforward?ports=none")),
        (Method::POST, format!("{PODS}/p/exec?command=sh&dryRun=All")),
        (Method::GET, format!("{PODS}/p/proxy/some/where?path=else")),
        (Method::PUT, "/api/v1/namespaces/default/services/https:s:web/proxy".to_owned()),
        (Method::GET, "/api/v1/nodes/n/proxy/metrics".to_owned()),
    ];
    let faults = pair.differences(requests).await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_without_pods_behind_it_is_no_way_to_anybody() {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    let ask = |peer: &Peer, method: &str, path: &str| {
        let answer = peer.server.ask(Call { method, path, body: "" }).expect("an answer");
        (answer.code, serde_json::from_str::<Value>(&answer.body).unwrap_or_else(|_| json!(answer.body)))
    };
    for peer in [&pair.ours, &pair.theirs] {
        // Theirs is there a while after the server is.
        let mut asked = 0..2_000;
        let is_there = |_| ask(peer, "GET", "/api/v1/namespaces/default/endpoints/kubernetes").0 == 200;
        assert!(asked.any(is_there), "nobody makes its Endpoints");
    }
    let mut faults = Vec::new();
    for path in [
        "kubernetes/proxy",
        "kubernetes/proxy/",
        "kubernetes:443/proxy/version",
        "https:kubernetes:443/proxy",
        "https:kubernetes:443/proxy/version?x=1",
        "https:kubernetes:https/proxy/",
        "https:kubernetes:444/proxy/",
        "none/proxy/",
        "none:443/proxy/",
        "a:b:c:d/proxy/",
        "ftp:kubernetes:443/proxy/",
    ] {
        for method in ["GET", "POST"] {
            let path = format!("/api/v1/namespaces/default/services/{path}");
            let (ours, theirs) = (ask(&pair.ours, method, &path), ask(&pair.theirs, method, &path));
            if ours != theirs {
                faults.push(format!("{method} {path}\n  ours   {ours:?}\n  theirs {theirs:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_that_the_policy_disallows_are_refused_alike() {
    if !needs::peers_or_skip() {
        return;
    }
    let flags = ["--allow-privileged=false", "--disable-admission-plugins=ServiceAccount"];
    let (pair, _cluster) = Pair::start_told(&flags).await.expect("both servers");
    let privileged = json!({ "privileged": true, "runAsUser": -1, "allowPrivilegeEscalation": false });
    let container = |name: &str| json!({ "name": name, "image": "i", "securityContext": privileged });
    let spec = |restart: &str| json!({ "restartPolicy": restart, "initContainers": [container("i")], "containers": [container("c")] });
    let template = |restart: &str| json!({ "metadata": { "labels": { "a": "b" } }, "spec": spec(restart) });
    let selector = json!({ "matchLabels": { "a": "b" } });
    let (core, apps, batch) = ("/api/v1", "/apis/apps/v1", "/apis/batch/v1");
    let job = json!({ "template": template("Never") });
    let set = json!({ "selector": selector, "template": template("Always") });
    let host = json!({ "windowsOptions": { "hostProcess": true } });
    let plain = json!({ "name": "c", "image": "i", "securityContext": { "privileged": false } });
    let objects = [
        (core, "pods", json!({ "spec": spec("Always") })),
        (
            core,
            "pods",
            json!({ "spec": { "hostNetwork": true, "securityContext": host, "containers": [plain] } }),
        ),
        (core, "pods", json!({ "spec": { "containers": [plain] } })),
        (core, "podtemplates", json!({ "template": template("Always") })),
        (
            core,
            "replicationcontrollers",
            json!({ "spec": { "selector": { "a": "b" }, "template": template("Always") } }),
        ),
        (apps, "replicasets", json!({ "spec": set })),
        (apps, "deployments", json!({ "spec": set })),
        (apps, "daemonsets", json!({ "spec": set })),
        (apps, "statefulsets", json!({ "spec": set })),
        (batch, "jobs", json!({ "spec": job })),
        (batch, "cronjobs", json!({ "spec": { "schedule": "* * * * *", "jobTemplate": { "spec": job } } })),
    ];
    let mut faults = Vec::new();
    for (group, resource, mut object) in objects {
        object["metadata"] = json!({ "name": "a" });
        let path = format!("{group}/namespaces/default/{resource}?dryRun=All");
        let mut said = Vec::new();
        for peer in [&pair.ours, &pair.theirs] {
            let answer = peer.send(Method::POST, &path, Some(&object)).await.expect("an answer");
            // What is taken in has what differs each time.
            said.push((answer.code, (answer.code != 201).then_some(answer.body)));
        }
        if said[0] != said[1] {
            faults.push(format!("{path} {object}\n  ours   {:?}\n  theirs {:?}", said[0], said[1]));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
