//! Who may do what by RBAC, ours and kube-apiserver's: the same roles and bindings at the start, the same
//! answers to questions, the same rules of somebody, the same refusals of rights that are given.
//!
//! In: `FOREBAY_RIGHTS_POLICIES` policies from seed `FOREBAY_RIGHTS_POLICIES_FROM` on, with 100 questions
//! each; `cargo xtask rights` sets them. Out: every difference.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use forebay_clients::needs;
use forebay_conformance::authorization::{RightsPolicy, draw, draw_of_bootstrap};
use forebay_conformance::{Answer, Pair, Peer};
use futures_util::StreamExt;
use http::Method;
use serde_json::{Value, json};

/// Policies in a run that nobody asked more of.
const COUNT: u64 = 10;
const QUESTIONS: usize = 100;
const AT_ONCE: usize = 8;
/// How often kube-apiserver is asked whether it has heard of a binding.
const ASKED_MAX: usize = 2_000;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const RESOURCES: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
const ACCESS: &str = "/apis/authorization.k8s.io/v1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_those_of_kube_apiserver() {
    if !needs::peers_or_skip() {
        return;
    }
    let asked = |name: &str, default: u64| {
        let text = std::env::var(format!("FOREBAY_RIGHTS_POLICIES{name}")).unwrap_or_default();
        if text.is_empty() { default } else { text.parse().expect("a number") }
    };
    let (count, from) = (asked("", COUNT), asked("_FROM", 1));
    let pair = Pair::start_authorizing("RBAC").await.expect("both servers");
    let mut found = Compared::default();

    let (roles, bindings) = bootstrap(&pair, &mut found).await;
    let questions = draw_of_bootstrap(from, QUESTIONS * count as usize / 4, &roles, &bindings);
    ask_all(&pair, &questions, &mut found).await;
    println!("figure: upstream's own policy: {} answers, {} allowed", found.answers, found.allowed);

    for seed in from..from + count {
        let policy = draw(seed, QUESTIONS * 3 / 4);
        install(&pair, &policy).await;
        ask_all(&pair, &policy.questions, &mut found).await;
        for user in &policy.users {
            let spec = json!({"spec": {"namespace": policy.namespace}});
            let path = format!("{ACCESS}/selfsubjectrulesreviews");
            let mut groups = user.groups.clone();
            // Without it nobody may ask.
            groups.push("system:authenticated".to_owned());
            let ask = async |peer: &Peer| {
                peer.send_as(&user.name, &groups, Method::POST, &path, &spec).await.expect("an answer")
            };
            let (ours, theirs) = (rules(ask(&pair.ours).await), rules(ask(&pair.theirs).await));
            found.take(&format!("rules of {user:?} under {:?}", policy.objects), &ours, &theirs);
        }
        give(&pair, &policy, &mut found).await;
    }
    println!(
        "figure: all: {} answers, {} allowed, {} differ",
        found.answers,
        found.allowed,
        found.lines.len()
    );
    let mut failure = String::new();
    for line in &found.lines {
        let _ = writeln!(failure, "{line}");
    }
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, &failure).expect("the report");
    }
    assert!(found.lines.is_empty(), "{} answers differ:\n{failure}", found.lines.len());
    assert!(found.allowed > found.answers / 10 && found.allowed < found.answers, "{}", found.allowed);
}

#[derive(Default)]
struct Compared {
    answers: usize,
    allowed: usize,
    lines: Vec<String>,
}

impl Compared {
    fn take(&mut self, what: &str, ours: &Value, theirs: &Value) {
        self.answers += 1;
        if ours != theirs {
            self.lines.push(format!("{what}\n  ours   {ours}\n  theirs {theirs}"));
        }
    }
}

/// Compares what both have made by themselves; the items of roles, and those of bindings.
async fn bootstrap(pair: &Pair, found: &mut Compared) -> (Vec<Value>, Vec<Value>) {
    let (mut roles, mut bindings) = (Vec::new(), Vec::new());
    for resource in RESOURCES {
        let path = format!("{RBAC}/{resource}");
        let list = async |peer: &Peer| -> Vec<Value> {
            let list = peer.send(Method::GET, &path, None).await.expect("an answer").body;
            let items = list["items"].as_array().cloned().unwrap_or_default();
            items
                .into_iter()
                .map(|mut item| {
                    let metadata = item["metadata"].as_object_mut().expect("metadata");
                    metadata.retain(|name, _| {
                        ["name", "namespace", "labels", "annotations"].contains(&name.as_str())
                    });
                    item
                })
                .collect()
        };
        let (ours, theirs) = (list(&pair.ours).await, list(&pair.theirs).await);
        assert!(!theirs.is_empty(), "{resource}");
        let named = |item: &Value| format!("{}/{}", item["metadata"]["namespace"], item["metadata"]["name"]);
        let names: BTreeSet<String> = ours.iter().chain(&theirs).map(named).collect();
        for name in names {
            let of =
                |items: &[Value]| items.iter().find(|item| named(item) == name).cloned().unwrap_or_default();
            found.take(&format!("{resource} {name}"), &of(&ours), &of(&theirs));
        }
        if resource.ends_with("bindings") { bindings.extend(ours) } else { roles.extend(ours) }
    }
    (roles, bindings)
}

/// Makes the policy on both, and waits until kube-apiserver, which answers a write before it has heard of it,
/// has heard of all: of the last object of each resource.
async fn install(pair: &Pair, policy: &RightsPolicy) {
    let namespace = &policy.namespace;
    let group = "rbac.authorization.k8s.io";
    let subject = json!([{"apiGroup": group, "kind": "User", "name": format!("{namespace}-last")}]);
    let binding = |kind: &str, name: &str| {
        json!({
            "metadata": {"name": name}, "subjects": subject, "roleRef": {"apiGroup": group, "kind": kind, "name": name},
        })
    };
    let role = |name: &str, resource: &str| {
        json!({
            "metadata": {"name": name}, "rules": [{"verbs": ["get"], "apiGroups": [group], "resources": [resource]}],
        })
    };
    let (last, own) = (format!("{namespace}-last"), format!("{RBAC}/namespaces/{namespace}"));
    let lasts = [
        (format!("{RBAC}/clusterroles"), role(&last, "one")),
        (format!("{RBAC}/clusterrolebindings"), binding("ClusterRole", &last)),
        (format!("{own}/roles"), role("last", "other")),
        (format!("{own}/rolebindings"), binding("Role", "last")),
    ];
    for peer in [&pair.ours, &pair.theirs] {
        let made = json!({"metadata": {"name": namespace}});
        let made = peer.send(Method::POST, "/api/v1/namespaces", Some(&made)).await.expect("an answer");
        assert_eq!(made.code, 201, "{}", made.body);
        for (path, object) in policy.objects.iter().chain(&lasts) {
            let made = peer.send(Method::POST, path, Some(object)).await.expect("an answer");
            assert_eq!(made.code, 201, "{path} {object}: {}", made.body);
        }
        for resource in ["one", "other"] {
            let of = json!({"verb": "get", "group": group, "resource": resource, "namespace": namespace});
            let spec = json!({"user": last, "resourceAttributes": of});
            let mut is_heard = false;
            for _ in 0..ASKED_MAX {
                is_heard = review(peer, &spec).await["allowed"] == true;
                // Ours has with the answer.
                if is_heard || std::ptr::eq(peer, &pair.ours) {
                    break;
                }
            }
            assert!(is_heard, "{spec}");
        }
    }
}

async fn review(peer: &Peer, spec: &Value) -> Value {
    let path = format!("{ACCESS}/subjectaccessreviews");
    let answer = peer.send(Method::POST, &path, Some(&json!({"spec": spec}))).await.expect("an answer");
    assert_eq!(answer.code, 201, "{spec}: {}", answer.body);
    answer.body["status"].clone()
}

async fn ask_all(pair: &Pair, questions: &[Value], found: &mut Compared) {
    let asked = questions
        .iter()
        .map(|spec| async move { (spec, review(&pair.ours, spec).await, review(&pair.theirs, spec).await) });
    let mut answers = futures_util::stream::iter(asked).buffered(AT_ONCE);
    while let Some((spec, ours, theirs)) = answers.next().await {
        found.allowed += usize::from(ours["allowed"] == true);
        // Ours answers everyone whether it is well, whatever rules say.
        let path = spec["nonResourceAttributes"]["path"].as_str().unwrap_or("");
        if ["/healthz", "/livez", "/readyz"].iter().any(|open| path.starts_with(open)) {
            continue;
        }
        found.take(&spec.to_string(), &told(&ours), &told(&theirs));
    }
}

/// A decision without what is a matter of chance: upstream goes through bindings in no order.
fn told(status: &Value) -> Value {
    let reason = status["reason"].as_str().unwrap_or("");
    let reason = match reason.strip_prefix("RBAC: ") {
        Some(by) if by.starts_with("allowed by") => "RBAC: allowed by".to_owned(),
        Some(errors) => format!("RBAC: {}", in_order(errors)),
        None => reason.to_owned(),
    };
    json!({"allowed": status["allowed"], "denied": status["denied"], "reason": reason, "error": status["evaluationError"]})
}

/// `[a, b]` with its parts in order.
fn in_order(errors: &str) -> String {
    let Some(list) = errors.strip_prefix('[').and_then(|list| list.strip_suffix(']')) else {
        return errors.to_owned();
    };
    let mut all: Vec<&str> = list.split(", ").collect();
    all.sort_unstable();
    format!("[{}]", all.join(", "))
}

/// The rules of somebody as a set: upstream tells those of a role once for each binding.
fn rules(answer: Answer) -> Value {
    assert_eq!(answer.code, 201, "{}", answer.body);
    let status = &answer.body["status"];
    let set = |list: &str| -> BTreeSet<String> {
        status[list].as_array().into_iter().flatten().map(Value::to_string).collect()
    };
    json!({
        "resources": set("resourceRules"), "paths": set("nonResourceRules"), "incomplete": status["incomplete"],
        "error": in_order(status["evaluationError"].as_str().unwrap_or("")),
    })
}

/// Somebody who may write roles and bindings gives what the policy's roles do: allowed as far as they have
/// it.
async fn give(pair: &Pair, policy: &RightsPolicy, found: &mut Compared) {
    let namespace = &policy.namespace;
    let group = "rbac.authorization.k8s.io";
    let user = &policy.users[0];
    let manager = format!("{namespace}-manager");
    let role = json!({"metadata": {"name": manager}, "rules": [{
        "verbs": ["create", "update"], "apiGroups": [group],
        "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
    }]});
    let subject = json!([{"apiGroup": group, "kind": "Group", "name": manager}]);
    let binding = json!({
        "metadata": {"name": manager}, "subjects": subject,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": manager},
    });
    for peer in [&pair.ours, &pair.theirs] {
        for (resource, object) in [("clusterroles", &role), ("clusterrolebindings", &binding)] {
            let made = peer.send(Method::POST, &format!("{RBAC}/{resource}"), Some(object)).await;
            assert_eq!(made.expect("an answer").code, 201);
        }
        let of = json!({"verb": "create", "group": group, "resource": "roles", "namespace": namespace});
        let spec = json!({"user": "m", "groups": [manager], "resourceAttributes": of});
        for _ in 0..ASKED_MAX {
            if review(peer, &spec).await["allowed"] == true {
                break;
            }
        }
    }
    let mut groups = user.groups.clone();
    groups.push(manager);
    for (path, object) in &policy.objects {
        let mut object = object.clone();
        let name = format!("{}-given", object["metadata"]["name"].as_str().expect("a name"));
        object["metadata"]["name"] = name.clone().into();
        for (method, path) in
            [(Method::POST, format!("{path}?dryRun=All")), (Method::PUT, format!("{path}/{name}?dryRun=All"))]
        {
            let ask = async |peer: &Peer| {
                let answer = peer.send_as(&user.name, &groups, method.clone(), &path, &object).await;
                let Answer { code, body, .. } = answer.expect("an answer");
                let message = body["message"].as_str().unwrap_or("");
                let (message, errors) = message.split_once("; resolution errors: ").unwrap_or((message, ""));
                json!({"code": code, "message": message, "errors": errors.len(), "details": body["details"]})
            };
            let (ours, theirs) = (ask(&pair.ours).await, ask(&pair.theirs).await);
            found.take(&format!("{} {method} {path} {object}", user.name), &ours, &theirs);
        }
    }
}
