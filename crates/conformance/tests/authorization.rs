//! Who may do what, by ours and by kube-apiserver: the same questions, the same answers.
//!
//! In: `FOREBAY_RIGHTS` questions in all, over `FOREBAY_RIGHTS_POLICIES` policies; `cargo xtask rights` sets
//! them. Out: every difference.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_clients::needs;
use forebay_conformance::pair::{ActsAs, Request};
use forebay_conformance::rights::{
    GROUP, NAMESPACES, Policy, Question, agreed, agreed_rules, own_questions, own_users, path,
};
use forebay_conformance::{Answer, Pair, Peer};
use futures_util::StreamExt;
use http::Method;
use serde_json::{Value, json};

/// Questions and policies in a run that nobody asked more of.
const QUESTIONS: usize = 1_500;
const POLICIES: u64 = 20;
const AT_ONCE: usize = 8;
/// How often a server is asked whether it has heard of something.
const ASKED_MAX: usize = 4_000;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const RULES: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const FLAGS: [&str; 2] = ["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"];

fn asked_for(name: &str, default: usize) -> usize {
    let text = std::env::var(name).unwrap_or_default();
    if text.is_empty() { default } else { text.parse().expect("a number") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_people_may_do_the_same() {
    if !needs::peers_or_skip() {
        return;
    }
    let count = asked_for("FOREBAY_RIGHTS", QUESTIONS);
    let policies = asked_for("FOREBAY_RIGHTS_POLICIES", POLICIES as usize) as u64;
    let (pair, _cluster) = Pair::start_told(&FLAGS).await.expect("both servers");
    let mut failure = String::new();
    for namespace in NAMESPACES {
        make(&pair, "/api/v1/namespaces", &json!({ "metadata": { "name": namespace } })).await;
    }
    for (path, object) in node_objects() {
        make(&pair, path, &object).await;
    }
    let policies: Vec<Policy> = (1..=policies).map(Policy::draw).collect();
    let objects = policies.iter().flat_map(|policy| &policy.objects);
    let made = futures_util::stream::iter(objects).map(|(path, object)| make(&pair, path, object));
    made.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    heard(&pair).await;

    let own = count / 4;
    let each = (count - own) / policies.len();
    let drawn = policies.iter().flat_map(|policy| policy.questions(each));
    let questions: Vec<Question> = own_questions(32, own).into_iter().chain(drawn).collect();
    let (allowed, all) = (AtomicUsize::new(0), questions.len());
    let found = futures_util::stream::iter(questions).map(|question| ask(&pair, question, &allowed));
    let found: Vec<Option<String>> = found.buffer_unordered(AT_ONCE).collect().await;
    let mut differences = 0;
    for line in found.into_iter().flatten() {
        differences += 1;
        let _ = writeln!(failure, "{line}");
    }
    println!("figure: {all} questions, {} of them allowed, {differences} differ", allowed.into_inner());

    let users: Vec<ActsAs> =
        own_users().into_iter().chain(policies.iter().flat_map(|policy| policy.users().to_vec())).collect();
    let reviews = users.len() * NAMESPACES.len();
    let asked = users.iter().flat_map(|user| NAMESPACES.map(|namespace| (user, namespace)));
    let found = futures_util::stream::iter(asked).map(|(user, namespace)| rules(&pair, user, namespace));
    let found: Vec<Option<String>> = found.buffer_unordered(AT_ONCE).collect().await;
    let mut others = 0;
    for line in found.into_iter().flatten() {
        others += 1;
        let _ = writeln!(failure, "{line}");
    }
    println!("figure: {reviews} reviews of rules, {others} differ");
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, &failure).expect("the report");
    }
    assert!(
        differences + others == 0,
        "{differences} answers and {others} lists of rules differ:\n{failure}"
    );
}

/// What leads to nodes: a pod on each of two, and what they name.
fn node_objects() -> Vec<(&'static str, Value)> {
    let mut objects = Vec::new();
    for (name, node) in [("own", "n1"), ("other", "n2")] {
        let spec = json!({
            "nodeName": node, "serviceAccountName": name, "containers": [{ "name": "c", "image": "i" }],
            "volumes": [
                { "name": "s", "secret": { "secretName": name } },
                { "name": "m", "configMap": { "name": name } },
                { "name": "c", "persistentVolumeClaim": { "claimName": name } },
            ],
        });
        objects.push((
            "/api/v1/namespaces/rights-a/pods",
            json!({ "metadata": { "name": name }, "spec": spec }),
        ));
        let volume = json!({
            "metadata": { "name": name },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
                "claimRef": { "namespace": "rights-a", "name": name },
                "csi": { "driver": "d", "volumeHandle": name, "nodeStageSecretRef": { "namespace": "kube-system", "name": name } },
            },
        });
        objects.push(("/api/v1/persistentvolumes", volume));
        let attachment = json!({
            "metadata": { "name": name },
            "spec": { "attacher": "d", "nodeName": node, "source": { "persistentVolumeName": name } },
        });
        objects.push(("/apis/storage.k8s.io/v1/volumeattachments", attachment));
        let slice = json!({
            "metadata": { "name": name },
            "spec": { "driver": "d.example.com", "nodeName": node,
                      "pool": { "name": node, "generation": 1, "resourceSliceCount": 1 }, "devices": [] },
        });
        objects.push(("/apis/resource.k8s.io/v1/resourceslices", slice));
    }
    objects
}

async fn make(pair: &Pair, path: &str, object: &Value) {
    for peer in [&pair.ours, &pair.theirs] {
        let answer = peer.send(Method::POST, path, Some(object)).await.expect("an answer");
        assert_eq!(answer.code, 201, "{path} {object}: {}", answer.body);
    }
}

/// Waits until both servers go by all that was made: what is made last has been heard of last, of each
/// resource.
async fn heard(pair: &Pair) {
    let rules = json!([{ "verbs": ["frob"], "apiGroups": [""], "resources": ["things"] }]);
    let subjects = |name: &str| json!([{ "apiGroup": GROUP, "kind": "User", "name": name }]);
    for (namespace, role, binding, kind, user) in [
        ("rights-a", "roles", "rolebindings", "Role", "last"),
        ("", "clusterroles", "clusterrolebindings", "ClusterRole", "last-of-all"),
    ] {
        let metadata = json!({ "name": "zz-last" });
        make(pair, &path(namespace, role), &json!({ "metadata": metadata, "rules": rules })).await;
        let bound = json!({
            "metadata": metadata, "subjects": subjects(user),
            "roleRef": { "apiGroup": GROUP, "kind": kind, "name": "zz-last" },
        });
        make(pair, &path(namespace, binding), &bound).await;
        let things = json!({ "verb": "frob", "resource": "things", "namespace": "rights-a" });
        for peer in [&pair.ours, &pair.theirs] {
            until_allowed(peer, user, &[], &things).await;
        }
    }
    for (name, node) in [("own", "n1"), ("other", "n2")] {
        let (user, nodes) = (format!("system:node:{node}"), ["system:nodes"]);
        for (group, resource, namespace) in [
            ("", "secrets", "kube-system"),
            ("storage.k8s.io", "volumeattachments", ""),
            ("resource.k8s.io", "resourceslices", ""),
        ] {
            let about = json!({ "verb": "get", "group": group, "resource": resource, "namespace": namespace, "name": name });
            for peer in [&pair.ours, &pair.theirs] {
                until_allowed(peer, &user, &nodes, &about).await;
            }
        }
    }
}

async fn until_allowed(peer: &Peer, user: &str, groups: &[&str], about: &Value) {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": { "user": user, "groups": groups, "resourceAttributes": about },
    });
    for _ in 0..ASKED_MAX {
        let answer = peer.send(Method::POST, REVIEWS, Some(&review)).await.expect("an answer");
        assert_eq!(answer.code, 201, "{}", answer.body);
        if answer.body["status"]["allowed"] == true {
            return;
        }
    }
    panic!("{user} {about}: nobody hears of it");
}

/// What differs in the answers to a question.
async fn ask(pair: &Pair, question: Question, allowed: &AtomicUsize) -> Option<String> {
    let review = question.review();
    let ours = pair.ours.send(Method::POST, REVIEWS, Some(&review)).await.expect("an answer");
    let theirs = pair.theirs.send(Method::POST, REVIEWS, Some(&review)).await.expect("an answer");
    if theirs.body["status"]["allowed"] == true {
        allowed.fetch_add(1, Ordering::Relaxed);
    }
    let [one, other] = [&ours, &theirs].map(|answer| match answer.code {
        201 => agreed(&answer.body["status"]),
        _ => json!({ "code": answer.code, "message": answer.body["message"] }),
    });
    (one != other).then(|| format!("{}\n  ours   {one}\n  theirs {other}", review["spec"]))
}

/// What differs in the rules of somebody.
async fn rules(pair: &Pair, user: &ActsAs, namespace: &str) -> Option<String> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": { "namespace": namespace },
    });
    let mut said = Vec::new();
    for peer in [&pair.ours, &pair.theirs] {
        let answer = acting(peer, Method::POST, RULES, user, Some(&review), "application/json").await;
        said.push(match answer.code {
            201 => agreed_rules(&answer.body["status"]),
            _ => json!({ "code": answer.code, "message": answer.body["message"] }),
        });
    }
    (said[0] != said[1])
        .then(|| format!("{user:?} in {namespace}\n  ours   {}\n  theirs {}", said[0], said[1]))
}

async fn acting(
    peer: &Peer,
    method: Method,
    path: &str,
    user: &ActsAs,
    body: Option<&Value>,
    content_type: &'static str,
) -> Answer {
    let mut request = Request::new(method, path.to_owned());
    request.content_type = content_type;
    request.user = Some(user.clone());
    request.body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let answer = peer.ask(&request, "application/json").await.expect("an answer");
    let text = || Value::String(String::from_utf8_lossy(&answer.body).into_owned());
    let body = serde_json::from_slice(&answer.body).unwrap_or_else(|_| text());
    Answer { code: answer.code, warnings: answer.warnings, body }
}

/// What an expression is told that an account may: of things that one group each may frob.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expression_asks_for_an_account_in_the_same_groups() {
    const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
    const GROUPS: [&str; 4] = [
        "system:authenticated",
        "system:serviceaccounts",
        "system:serviceaccounts:rights-a",
        "system:serviceaccounts:other",
    ];
    if !needs::peers_or_skip() {
        return;
    }
    let (pair, _cluster) = Pair::start_told(&FLAGS).await.expect("both servers");
    make(&pair, "/api/v1/namespaces", &json!({ "metadata": { "name": "rights-a" } })).await;
    let mut validations = Vec::new();
    for (at, group) in GROUPS.into_iter().enumerate() {
        let (metadata, things) = (json!({ "name": format!("frobs-{at}") }), format!("things{at}"));
        let rules = json!([{ "verbs": ["frob"], "apiGroups": [""], "resources": [things] }]);
        make(&pair, &path("", "clusterroles"), &json!({ "metadata": metadata, "rules": rules })).await;
        let bound = json!({
            "metadata": metadata, "subjects": [{ "apiGroup": GROUP, "kind": "Group", "name": group }],
            "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": metadata["name"] },
        });
        make(&pair, &path("", "clusterrolebindings"), &bound).await;
        for peer in [&pair.ours, &pair.theirs] {
            let about = json!({ "verb": "frob", "resource": things });
            until_allowed(peer, "somebody", &[group], &about).await;
        }
        let asked = format!(
            "authorizer.serviceAccount('rights-a', 'own').group('').resource('{things}').check('frob').allowed()"
        );
        validations.push(json!({ "expression": asked, "message": format!("{group} is none of its groups") }));
    }
    let spec = json!({
        "matchConstraints": { "resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
        }] },
        "validations": validations,
    });
    let policies = format!("{ADMISSION}/validatingadmissionpolicies");
    make(&pair, &policies, &json!({ "metadata": { "name": "p" }, "spec": spec })).await;
    let spec = json!({ "policyName": "p", "validationActions": ["Warn"] });
    let bindings = format!("{ADMISSION}/validatingadmissionpolicybindings");
    make(&pair, &bindings, &json!({ "metadata": { "name": "b" }, "spec": spec })).await;
    let mut told = Vec::new();
    for peer in [&pair.ours, &pair.theirs] {
        told.push(until_warned(peer).await);
    }
    assert_eq!(told[0], told[1]);
    let none = |group: &str| told[0].iter().any(|warning| warning.contains(&format!("{group} is none")));
    assert_eq!(GROUPS.map(none), [true, false, false, true], "{told:?}");
}

/// What is told of a ConfigMap, once something is.
async fn until_warned(peer: &Peer) -> Vec<String> {
    let map = json!({ "metadata": { "name": "m" } });
    for _ in 0..ASKED_MAX {
        let path = "/api/v1/namespaces/rights-a/configmaps?dryRun=All";
        let answer = peer.send(Method::POST, path, Some(&map)).await.expect("an answer");
        assert_eq!(answer.code, 201, "{}", answer.body);
        if !answer.warnings.is_empty() {
            return answer.warnings;
        }
    }
    panic!("nobody is warned");
}

/// What nodes write, a row each: method, path, body.
fn writes_of_nodes() -> Vec<(Method, &'static str, Value)> {
    const PODS: &str = "/api/v1/namespaces/rights-a/pods";
    let mirror = |node: &str, owner: &str, more: Value| {
        let mut pod = json!({
            "metadata": { "name": "mirror", "annotations": { "kubernetes.io/config.mirror": "x" },
                          "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": owner, "uid": "u", "controller": true }] },
            "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "i" }] },
        });
        pod["spec"].as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        pod
    };
    let node = |name: &str, labels: Value, taints: Value| json!({ "metadata": { "name": name, "labels": labels }, "spec": { "taints": taints } });
    let merge = |patch: Value| patch;
    let eviction = |name: &str| json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name, "namespace": "rights-a" } });
    let lease = |name: &str| json!({ "metadata": { "name": name }, "spec": { "holderIdentity": name } });
    let csi = |name: &str| json!({ "metadata": { "name": name }, "spec": { "drivers": [] } });
    let slice = |name: &str, node: &str| {
        json!({ "metadata": { "name": name }, "spec": { "driver": "d.example.com", "nodeName": node,
                "pool": { "name": name, "generation": 1, "resourceSliceCount": 1 }, "devices": [] } })
    };
    let token = |bound: Value, audiences: Value| {
        json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": { "boundObjectRef": bound, "audiences": audiences } })
    };
    let pod_reference =
        |name: &str, uid: &str| json!({ "apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid });
    let account = "/api/v1/namespaces/rights-a/serviceaccounts/own/token";
    vec![
        (
            Method::POST,
            "/api/v1/nodes",
            node("n1", json!({ "kubernetes.io/hostname": "h", "x": "y" }), json!([])),
        ),
        (Method::POST, "/api/v1/nodes", node("n3", json!({}), json!([]))),
        (Method::POST, "/api/v1/nodes", node("n1", json!({ "node-role.kubernetes.io/x": "" }), json!([]))),
        (
            Method::PATCH,
            "/api/v1/nodes/n1",
            merge(json!({ "metadata": { "labels": { "a.k8s.io/b": "c", "b.kubernetes.io/d": "" } } })),
        ),
        (
            Method::PATCH,
            "/api/v1/nodes/n1",
            merge(json!({ "metadata": { "labels": { "topology.kubernetes.io/zone": "z" } } })),
        ),
        (
            Method::PATCH,
            "/api/v1/nodes/n1",
            merge(json!({ "spec": { "taints": [{ "key": "k", "effect": "NoSchedule" }] } })),
        ),
        (
            Method::PATCH,
            "/api/v1/nodes/n1",
            merge(
                json!({ "metadata": { "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u" }] } }),
            ),
        ),
        (Method::PATCH, "/api/v1/nodes/n2/status", merge(json!({ "status": { "phase": "Running" } }))),
        (
            Method::PATCH,
            "/api/v1/nodes/n1/status",
            merge(json!({ "status": { "capacity": { "pods": "10" } } })),
        ),
        (Method::DELETE, "/api/v1/nodes/n1", Value::Null),
        (Method::GET, "/api/v1/nodes", Value::Null),
        (Method::GET, "/api/v1/nodes?fieldSelector=metadata.name%3Dn2", Value::Null),
        (
            Method::POST,
            PODS,
            json!({ "metadata": { "name": "p" }, "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] } }),
        ),
        (Method::POST, PODS, mirror("n2", "n1", json!({}))),
        (Method::POST, PODS, mirror("n1", "n2", json!({}))),
        (Method::POST, PODS, mirror("n1", "n1", json!({}))),
        (
            Method::POST,
            PODS,
            mirror("n1", "n1", json!({ "volumes": [{ "name": "v", "secret": { "secretName": "s" } }] })),
        ),
        (
            Method::PATCH,
            "/api/v1/namespaces/rights-a/pods/own/status",
            merge(json!({ "status": { "phase": "Running" } })),
        ),
        (
            Method::PATCH,
            "/api/v1/namespaces/rights-a/pods/own/status",
            merge(json!({ "metadata": { "labels": { "a": "b" } } })),
        ),
        (
            Method::PATCH,
            "/api/v1/namespaces/rights-a/pods/other/status",
            merge(json!({ "status": { "phase": "Running" } })),
        ),
        (
            Method::PATCH,
            "/api/v1/namespaces/rights-a/pods/own",
            merge(json!({ "metadata": { "labels": { "a": "b" } } })),
        ),
        (Method::POST, "/api/v1/namespaces/rights-a/pods/other/eviction", eviction("other")),
        (Method::POST, "/api/v1/namespaces/rights-a/pods/gone/eviction", eviction("gone")),
        (Method::POST, "/api/v1/namespaces/rights-a/pods/own/binding", json!({ "target": { "name": "n1" } })),
        (Method::DELETE, "/api/v1/namespaces/rights-a/pods/other", Value::Null),
        (Method::DELETE, "/api/v1/namespaces/rights-a/pods", Value::Null),
        (Method::POST, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease("n2")),
        (Method::POST, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease("n1")),
        (Method::POST, "/apis/coordination.k8s.io/v1/namespaces/rights-a/leases", lease("n1")),
        (Method::POST, "/apis/storage.k8s.io/v1/csinodes", csi("n2")),
        (Method::POST, "/apis/storage.k8s.io/v1/csinodes", csi("n1")),
        (Method::POST, "/apis/resource.k8s.io/v1/resourceslices", slice("s2", "n2")),
        (Method::POST, "/apis/resource.k8s.io/v1/resourceslices", slice("s1", "n1")),
        (Method::DELETE, "/apis/resource.k8s.io/v1/resourceslices/other", Value::Null),
        (Method::GET, "/apis/resource.k8s.io/v1/resourceslices", Value::Null),
        (Method::GET, "/api/v1/namespaces/rights-a/secrets/own", Value::Null),
        (Method::GET, "/api/v1/namespaces/rights-a/secrets/other", Value::Null),
        (Method::GET, "/api/v1/namespaces/rights-a/secrets", Value::Null),
        (
            Method::GET,
            "/api/v1/namespaces/rights-a/configmaps?fieldSelector=metadata.name%3Dother",
            Value::Null,
        ),
        (Method::GET, "/api/v1/pods", Value::Null),
        (Method::GET, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2", Value::Null),
        (
            Method::PATCH,
            "/api/v1/namespaces/rights-a/persistentvolumeclaims/own/status",
            merge(json!({ "metadata": { "labels": { "a": "b" } } })),
        ),
        (Method::POST, account, token(Value::Null, json!(["a"]))),
        (Method::POST, account, token(pod_reference("own", ""), json!(["a"]))),
        (Method::POST, account, token(pod_reference("gone", "u"), json!(["a"]))),
        (Method::POST, account, token(pod_reference("own", "u"), json!(["a"]))),
        (Method::POST, account, token(pod_reference("other", "u"), json!([]))),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_reads_and_writes_what_is_its_own_as_upstream_has_it() {
    if !needs::peers_or_skip() {
        return;
    }
    let (pair, _cluster) = Pair::start_told(&FLAGS).await.expect("both servers");
    for namespace in NAMESPACES {
        make(&pair, "/api/v1/namespaces", &json!({ "metadata": { "name": namespace } })).await;
    }
    for (path, object) in node_objects() {
        make(&pair, path, &object).await;
    }
    make(&pair, "/api/v1/nodes", &json!({ "metadata": { "name": "n2" } })).await;
    make(&pair, "/api/v1/namespaces/rights-a/serviceaccounts", &json!({ "metadata": { "name": "own" } }))
        .await;
    let claim = json!({
        "metadata": { "name": "own" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    make(&pair, "/api/v1/namespaces/rights-a/persistentvolumeclaims", &claim).await;
    for namespace in ["rights-a", "kube-node-lease"] {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        make(&pair, &path, &json!({ "metadata": { "name": "own" } })).await;
    }
    heard(&pair).await;
    let node = ActsAs {
        name: "system:node:n1".to_owned(),
        groups: vec!["system:nodes".to_owned(), "system:authenticated".to_owned()],
    };
    let mut failure = String::new();
    let mut refused = 0;
    for (method, path, body) in writes_of_nodes() {
        let content_type =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = (!body.is_null()).then_some(&body);
        let mut said = Vec::new();
        for peer in [&pair.ours, &pair.theirs] {
            let answer = acting(peer, method.clone(), path, &node, body, content_type).await;
            let mut message = answer.body["message"].as_str().unwrap_or_default().to_owned();
            for peer in [&pair.ours, &pair.theirs] {
                for uid in uids(peer).await {
                    message = message.replace(&uid, "<uid>");
                }
            }
            // Upstream shows what is other, as Go does.
            if let Some((before, _)) = message.split_once("status.quantity and status.conditions") {
                message = format!("{before}status.quantity and status.conditions");
            }
            said.push((answer.code, if answer.code < 300 { String::new() } else { message }));
        }
        refused += usize::from(said[1].0 == 403);
        if said[0] != said[1] {
            let shown = body.map(ToString::to_string).unwrap_or_default();
            let _ =
                writeln!(failure, "{method} {path} {shown}\n  ours   {:?}\n  theirs {:?}", said[0], said[1]);
        }
    }
    println!("figure: {} requests of a node, {refused} of them refused", writes_of_nodes().len());
    assert!(failure.is_empty(), "{failure}");
}

/// People, and what they may do to claims: write a status alone, what the scheduler may, what a driver may on
/// any node.
fn claim_rights() -> Vec<(&'static str, Value)> {
    let rule = |verbs: &[&str], resource: &str, names: &[&str]| json!({"apiGroups": ["resource.k8s.io"], "verbs": verbs, "resources": [resource], "resourceNames": names});
    let status = rule(&["patch", "update"], "resourceclaims/status", &[]);
    let binding = rule(&["patch", "update"], "resourceclaims/binding", &[]);
    let driver = rule(&["arbitrary-node:patch"], "resourceclaims/driver", &["d.example.com"]);
    vec![
        ("status-alone", json!([status])),
        ("schedules", json!([status, binding])),
        ("drives", json!([status, driver])),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_write_which_part_of_a_claims_status_is_the_same() {
    const CLAIM: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/own/status";
    if !needs::peers_or_skip() {
        return;
    }
    let (pair, _cluster) = Pair::start_told(&FLAGS[..1]).await.expect("both servers");
    let request = json!({"name": "r", "exactly": {"deviceClassName": "c"}});
    let claim = json!({"metadata": {"name": "own"}, "spec": {"devices": {"requests": [request]}}});
    make(&pair, "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", &claim).await;
    for (user, rules) in claim_rights() {
        make(&pair, &path("", "clusterroles"), &json!({"metadata": {"name": user}, "rules": rules})).await;
        let bound = json!({
            "metadata": {"name": user}, "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": user},
        });
        make(&pair, &path("", "clusterrolebindings"), &bound).await;
        let status = json!({"verb": "patch", "group": "resource.k8s.io", "resource": "resourceclaims",
            "subresource": "status", "namespace": "default", "name": "own"});
        for peer in [&pair.ours, &pair.theirs] {
            until_allowed(peer, user, &[], &status).await;
        }
    }
    let result = json!({"request": "r", "driver": "d.example.com", "pool": "p", "device": "a"});
    let allocated = json!({"status": {"allocation": {"devices": {"results": [result]}}}});
    let reserved = json!({"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}});
    let said = |ready: &str| {
        let conditions = json!([{"type": "Ready", "status": ready, "reason": "r", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        json!({"status": {"devices": [
            {"driver": "d.example.com", "pool": "p", "device": "a", "conditions": conditions},
        ]}})
    };
    let nothing = json!({"status": {"allocation": null, "reservedFor": null}});
    let mut failure = String::new();
    for (user, body) in [
        ("status-alone", &reserved),
        ("status-alone", &allocated),
        ("drives", &allocated),
        ("schedules", &allocated),
        ("schedules", &reserved),
        ("schedules", &reserved),
        ("status-alone", &reserved),
        ("status-alone", &said("True")),
        ("schedules", &said("True")),
        ("drives", &said("True")),
        ("drives", &said("False")),
        ("status-alone", &said("False")),
        ("drives", &nothing),
        ("schedules", &nothing),
    ] {
        let user = ActsAs { name: user.to_owned(), groups: vec!["system:authenticated".to_owned()] };
        let mut answers = Vec::new();
        for peer in [&pair.ours, &pair.theirs] {
            let sort = "application/merge-patch+json";
            let answer = acting(peer, Method::PATCH, CLAIM, &user, Some(body), sort).await;
            answers.push((answer.code, answer.body["message"].clone(), answer.body["status"].clone()));
        }
        if answers[0] != answers[1] {
            let _ =
                writeln!(failure, "{user:?} {body}\n  ours   {:?}\n  theirs {:?}", answers[0], answers[1]);
        }
    }
    assert!(failure.is_empty(), "{failure}");
}

/// Those of the nodes and pods there are, which each server draws.
async fn uids(peer: &Peer) -> Vec<String> {
    let mut all = Vec::new();
    for path in ["/api/v1/nodes", "/api/v1/namespaces/rights-a/pods"] {
        let list = peer.send(Method::GET, path, None).await.expect("an answer").body;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        all.extend(items.iter().filter_map(|item| Some(item["metadata"]["uid"].as_str()?.to_owned())));
    }
    all
}
