//! What admission plugins make of objects, ours and kube-apiserver's: the same answer, the same warnings, the
//! same object, and quotas with the same counts.
//!
//! In: `FOREBAY_PLUGIN_CASES` cases for each plugin from seed `FOREBAY_PLUGIN_CASES_FROM` on, of those that
//! `FOREBAY_PLUGIN_CASES_OF` names, or of all; `cargo xtask plugins` sets them. Out: every difference.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use forebay_clients::needs;
use forebay_conformance::normal::{Chosen, normal};
use forebay_conformance::pair::Request;
use forebay_conformance::plugins::{
    DECIDED, ENABLED, OF_RIGHTS, OPTIONAL, PLUGINS, PluginCase, PluginStep, PluginUnderTest, SENTINEL,
    defaults, draw,
};
use forebay_conformance::{Answer, Pair, Peer};
use futures_util::StreamExt;
use http::Method;
use serde_json::{Value, json};

/// Cases of each plugin in a run that nobody asked more of.
const COUNT: u64 = 30;
const AT_ONCE: usize = 8;
/// Room for the Services of all cases: none of them is deleted.
const MANY_SERVICES: &str = "--service-cluster-ip-range=10.96.0.0/16";
/// How often kube-apiserver is asked whether it has heard of a quota.
const ASKED_MAX: usize = 2_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_say_and_make_the_same() {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    agree(&pair, &PLUGINS, "").await;
    let [ours, theirs] = [counted_of_security(&pair.ours).await, counted_of_security(&pair.theirs).await];
    assert_eq!(ours, theirs, "ours, and theirs");
    let is_counted = |mode: &str| ours.iter().any(|line| line.contains(mode));
    assert!(["enforce", "warn"].iter().all(|mode| is_counted(&format!("mode=\"{mode}\""))), "{ours:#?}");
}

/// What a server counted of pod security, without what is let be by the default level: how often it is asked
/// for a pod until it has heard of a quota is not the same twice.
async fn counted_of_security(peer: &Peer) -> BTreeSet<String> {
    let answer = peer.ask(&Request::new(Method::GET, "/metrics".to_owned()), "*/*").await.expect("an answer");
    assert_eq!(answer.code, 200);
    let text = String::from_utf8_lossy(&answer.body);
    let counted = text.lines().filter(|line| line.starts_with("pod_security_") && !line.ends_with(" 0"));
    counted.filter(|line| !line.contains("policy_level=\"privileged\"")).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_that_are_turned_on_say_and_make_the_same() {
    if !needs::peers_or_skip() {
        return;
    }
    let (pair, _cluster) = Pair::start_told(&[ENABLED, MANY_SERVICES]).await.expect("both servers");
    for (path, class) in defaults() {
        for peer in [&pair.ours, &pair.theirs] {
            let made = peer.send(Method::POST, path, Some(&class)).await.expect("an answer");
            assert_eq!(made.code, 201, "{}", made.body);
        }
    }
    for peer in [&pair.ours, &pair.theirs] {
        hears_of_defaults(peer).await;
    }
    agree(&pair, &OPTIONAL, ".optional").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_that_ask_for_rights_say_the_same() {
    if !needs::peers_or_skip() {
        return;
    }
    let (pair, _cluster) = Pair::start_told(&[DECIDED]).await.expect("both servers");
    agree(&pair, &OF_RIGHTS, ".rights").await;
}

/// Waits until a server has heard of the default classes.
async fn hears_of_defaults(peer: &Peer) {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "probe"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "probe"},
        "spec": {"defaultBackend": backend},
    });
    for (path, object, member) in [
        ("/api/v1/namespaces/default/persistentvolumeclaims?dryRun=All", claim, "storageClassName"),
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses?dryRun=All", ingress, "ingressClassName"),
    ] {
        let mut is_heard = false;
        for _ in 0..ASKED_MAX {
            let answer = peer.send(Method::POST, path, Some(&object)).await.expect("an answer");
            is_heard = answer.body["spec"][member] == "usual";
            if is_heard {
                break;
            }
        }
        assert!(is_heard, "{path}: nobody hears of the default");
    }
}

/// Draws cases of `plugins`, and has both servers answer them alike.
///
/// - `suffix`: of the report's name.
async fn agree(pair: &Pair, plugins: &[PluginUnderTest], suffix: &str) {
    let asked = |name: &str, default: u64| {
        let text = std::env::var(format!("FOREBAY_PLUGIN_CASES{name}")).unwrap_or_default();
        if text.is_empty() { default } else { text.parse().expect("a number") }
    };
    let (count, from) = (asked("", COUNT), asked("_FROM", 1));
    let mut failure = String::new();
    let mut different = 0;
    let of = std::env::var("FOREBAY_PLUGIN_CASES_OF").unwrap_or_default();
    let is_asked =
        |plugin: &PluginUnderTest| of.is_empty() || of.split(',').any(|name| name == format!("{plugin:?}"));
    for plugin in plugins.iter().copied().filter(is_asked) {
        let cases = futures_util::stream::iter((from..from + count).map(|seed| draw(plugin, seed)));
        let mut found = cases.map(|case| async move { compare(pair, &case).await }).buffer_unordered(AT_ONCE);
        let (mut refused, mut all) = (0, 0);
        while let Some(Compared { steps, refused: by_both, lines }) = found.next().await {
            all += steps;
            refused += by_both;
            different += lines.len();
            for line in lines {
                let _ = writeln!(failure, "{line}");
            }
        }
        println!("figure: {plugin:?}: {count} cases, {all} answers, {refused} of them refusals");
    }
    if let Some(mut path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        path.push(suffix);
        std::fs::write(path, &failure).expect("the report");
    }
    assert!(different == 0, "{different} answers differ:\n{failure}");
}

#[derive(Default)]
struct Compared {
    steps: usize,
    refused: usize,
    lines: Vec<String>,
}

impl Compared {
    fn take(&mut self, what: &str, ours: Answer, theirs: Answer) {
        self.steps += 1;
        self.refused += usize::from(ours.code == 403 && theirs.code == 403);
        let [ours, theirs] = [ours, theirs].map(|answer| {
            let chosen = Chosen::of(&answer.body);
            let mut answer = normal(answer, &chosen);
            answer.warnings.sort();
            sort_causes(&mut answer.body);
            // Each server chooses its own.
            for port in answer.body["spec"]["ports"].as_array_mut().into_iter().flatten() {
                if port["nodePort"].is_number() {
                    port["nodePort"] = json!("<port>");
                }
            }
            answer
        });
        if ours != theirs {
            self.lines.push(format!("{what}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
}

/// Sorts what is wrong with an object: upstream goes through amounts in no order.
fn sort_causes(body: &mut Value) {
    if let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(Value::to_string);
    }
    let sorted = body["message"].as_str().and_then(|message| {
        let (before, list) = message.strip_suffix(']')?.split_once(": [")?;
        let mut all: Vec<&str> = list.split(", ").collect();
        all.sort_unstable();
        Some(format!("{before}: [{}]", all.join(", ")))
    });
    if let Some(sorted) = sorted {
        body["message"] = Value::from(sorted);
    }
}

async fn compare(pair: &Pair, case: &PluginCase) -> Compared {
    let mut compared = Compared::default();
    let PluginCase { name, labels, rule, objects, then, steps } = case;
    let namespace = json!({"metadata": {"name": name, "labels": labels}});
    let made = both(pair, Method::POST, "/api/v1/namespaces", Some(&namespace)).await;
    let is_made = made.0.code == 201;
    compared.take(&format!("{name}: namespace {labels}"), made.0, made.1);
    if !is_made {
        return compared;
    }
    if let Some((path, rule)) = rule {
        let (ours, theirs) = both(pair, Method::POST, &path.replace("{}", name), Some(rule)).await;
        let quota =
            (ours.code == 201 && rule["kind"] == "ResourceQuota").then(|| rule["spec"]["hard"].clone());
        compared.take(&format!("{name}: {rule}"), ours, theirs);
        if let Some(hard) = quota {
            for peer in [&pair.ours, &pair.theirs] {
                count_nothing(peer, name, &hard).await;
            }
        }
    }
    for (path, object) in objects {
        let (ours, theirs) = both(pair, Method::POST, &path.replace("{}", name), Some(object)).await;
        compared.take(&format!("{name}: {path} {object} under {rule:?} {labels}"), ours, theirs);
    }
    if rule.as_ref().is_some_and(|(_, rule)| rule["kind"] == "ResourceQuota") {
        let path = format!("/api/v1/namespaces/{name}/resourcequotas/rule");
        let (ours, theirs) = both(pair, Method::GET, &path, None).await;
        compared.take(&format!("{name}: the quota {rule:?}"), ours, theirs);
    }
    if let Some(labels) = then {
        let path = format!("/api/v1/namespaces/{name}?fieldManager=t");
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        let (ours, theirs) = both(pair, Method::PUT, &path, Some(&namespace)).await;
        compared.take(&format!("{name}: then {labels}"), ours, theirs);
    }
    for one in steps {
        let (ours, theirs) = (stepped(&pair.ours, one).await, stepped(&pair.theirs, one).await);
        if one.until.is_none() {
            let who = one.user.as_ref().map_or("", |user| &user.name);
            compared.take(&format!("{name}: {} {} {} {who}", one.method, one.path, one.body), ours, theirs);
        }
    }
    compared
}

/// The answer to a step, once it is the one that is waited for.
async fn stepped(peer: &Peer, step: &PluginStep) -> Answer {
    let mut request = Request::new(step.method.clone(), step.path.clone());
    if step.method == Method::PATCH {
        request.content_type = "application/merge-patch+json";
    }
    if !step.body.is_null() {
        request.body = step.body.to_string().into_bytes();
    }
    request.user = step.user.clone();
    for _ in 0..ASKED_MAX {
        let answer = peer.ask(&request, "application/json").await.expect("an answer");
        let text = || Value::String(String::from_utf8_lossy(&answer.body).into_owned());
        let body = serde_json::from_slice(&answer.body).unwrap_or_else(|_| text());
        if step.until.as_ref().is_none_or(|until| until.is_met(answer.code, &body)) {
            return Answer { code: answer.code, warnings: answer.warnings, body };
        }
    }
    panic!("{step:?}: nobody hears of it");
}

async fn both(pair: &Pair, method: Method, path: &str, body: Option<&Value>) -> (Answer, Answer) {
    let ours = pair.ours.send(method.clone(), path, body).await.expect("an answer");
    (ours, pair.theirs.send(method, path, body).await.expect("an answer"))
}

/// Writes the status of the quota, as the controller would on an empty namespace, and waits until the server
/// has heard of it: another quota comes after it, without its scopes, which lets no Lease in.
async fn count_nothing(peer: &Peer, namespace: &str, hard: &Value) {
    let quotas = format!("/api/v1/namespaces/{namespace}/resourcequotas");
    let heard = json!({SENTINEL: "0"});
    let second = json!({"metadata": {"name": "heard"}, "spec": {"hard": heard}});
    for (name, hard) in [("rule", hard), ("heard", &heard)] {
        if name == "heard" {
            let made = peer.send(Method::POST, &quotas, Some(&second)).await.expect("an answer");
            assert_eq!(made.code, 201, "{}", made.body);
        }
        let used: serde_json::Map<String, Value> =
            hard.as_object().into_iter().flatten().map(|(amount, _)| (amount.clone(), json!("0"))).collect();
        let path = format!("{quotas}/{name}");
        let mut quota = peer.send(Method::GET, &path, None).await.expect("an answer").body;
        quota["status"] = json!({"hard": hard, "used": used});
        let written = peer.send(Method::PUT, &format!("{path}/status"), Some(&quota)).await;
        let written = written.expect("an answer");
        assert_eq!(written.code, 200, "{}", written.body);
    }
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases?dryRun=All");
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}});
    for _ in 0..ASKED_MAX {
        if peer.send(Method::POST, &leases, Some(&lease)).await.expect("an answer").code == 403 {
            return;
        }
    }
    panic!("{namespace}: nobody hears of the quota");
}
