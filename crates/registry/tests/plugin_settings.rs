//! What plugins ask beside the object: the authorizer, and what an administrator says of them.

use std::sync::Arc;

use forebay_api::{Answer, Authorizer, Because, Body, Decision, Eventual, PatchKind, Rules};
use forebay_apimachinery::options::{CreateOptions, PatchOptions};
use forebay_apimachinery::{About, Attributes, Caller, Lease, Reason, Status};
use forebay_catalog::{RequestContext, Target};
use forebay_embedded::{Engine, Options};
use forebay_registry::{Config, LimitedResources, Registry, SecurityConfiguration};
use forebay_rt::{Clock, Random, Tasks};
use serde_json::{Value, json};

struct World {
    registry: Registry,
    _tasks: Tasks,
}

impl World {
    async fn new(config: Config) -> World {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let tasks = Tasks::new();
        let registry = Registry::new(config, engine, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, _tasks: tasks }
    }

    /// `group@version/resource/[namespace/]name/subresource`, by somebody.
    fn target(&self, path: &str, who: &str) -> Target {
        let mut parts = path.split('/').map(String::from);
        let gv = parts.next().expect("group@version");
        let (group, version) = gv.split_once('@').expect("group@version");
        let resource = parts.next().expect("a resource");
        let served = self.registry.catalog().resource(group, version, &resource).expect("served").clone();
        let namespace = if served.namespaced { parts.next() } else { None };
        let caller = Arc::new(Caller { name: who.to_owned(), ..Caller::default() }.authenticated());
        Target {
            served,
            namespace,
            name: parts.next(),
            subresource: parts.next(),
            caller: Some(caller),
            lease: Lease::of_server(),
            context: RequestContext::default(),
        }
    }

    async fn create(&self, path: &str, who: &str, body: Value) -> Result<Value, Status> {
        let body = Body::Json(body.to_string().into());
        self.registry.create(&self.target(path, who), &body, &CreateOptions::default()).await.map(object)
    }

    async fn merge(&self, path: &str, who: &str, body: Value) -> Result<Value, Status> {
        let (target, body) = (self.target(path, who), body.to_string());
        let options = PatchOptions::default();
        self.registry.patch(&target, PatchKind::Merge, body.as_bytes(), &options).await.map(object)
    }
}

fn object(answer: Answer) -> Value {
    serde_json::from_slice(&answer.outcome.json()).expect("an answer is JSON")
}

/// Lets everybody do what has their name in its own: `approve` on `a.example/*`.
struct ByName;

impl Authorizer for ByName {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        let About::Resource(of) = asked.about else { return Eventual::Now(Decision::Deny(Because::Unsaid)) };
        let name = match (of.group, of.resource) {
            ("certificates.k8s.io", "signers") => format!("{} {}", asked.verb.as_str(), of.name),
            _ => String::new(),
        };
        Eventual::Now(match asked.caller.name == name {
            true => Decision::Allow(Because::Unsaid),
            false => Decision::NoOpinion(Because::Unsaid),
        })
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}

const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIVk1IMENBUUF3R3pFTk1Bc0dBMVVFQXd3RVkyOXVaakVLTUFnR0ExVUVDZ3dCWnpCWk1CTUdCeXFHU000OQpBZ0VHQ0NxR1NNNDlBd0VIQTBJQUJMaXdrU094dmliYUFmMURmbDM0N0RySGFzcERoaUxlWkJ2NXVNZzNIZWV2CjcxeTg2YlZzSGViVUhidjRFRU1tTWl2SkhGcW5GMUJDdkZENGszZU5wTDJnQURBS0JnZ3Foa2pPUFFRREFnTkkKQURCRkFpQWk5eCttZ05lU3U1ZjFWdE5OR041NVdTbUxwOG1uVDBUdGo2K1plZC9ENXdJaEFMVE5sdmVpQzRkeAo3Y2Z6ZHN3SWQ3VUpUMUljc1B3ek92Y1NJbkhESWlqcwotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";

#[tokio::test]
async fn certificates_are_approved_and_signed_by_who_may_for_their_signer() {
    const REQUESTS: &str = "certificates.k8s.io@v1/certificatesigningrequests";
    let world = World::new(Config { authorizer: Arc::new(ByName), ..Config::default() }).await;
    for name in ["one", "two"] {
        let request = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": REQUEST, "signerName": "a.example/s", "usages": ["client auth"]},
        });
        world.create(REQUESTS, "anybody", request).await.expect("a request");
    }
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]}});
    let path = |name: &str, part: &str| format!("{REQUESTS}/{name}/{part}");
    for who in ["anybody", "sign a.example/s", "approve b.example/s"] {
        let refused =
            world.merge(&path("one", "approval"), who, approved.clone()).await.expect_err("refused");
        assert_eq!(refused.reason, Reason::Forbidden);
        assert_eq!(
            refused.message,
            "certificatesigningrequests.certificates.k8s.io \"one\" is forbidden: user not permitted to approve requests with signerName \"a.example/s\""
        );
    }
    world.merge(&path("one", "approval"), "approve a.example/s", approved.clone()).await.expect("by name");
    world.merge(&path("two", "approval"), "approve a.example/*", approved).await.expect("by domain");
    let failed = json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "r"}, {"type": "Failed", "status": "True", "reason": "r"},
    ]}});
    let refused = world.merge(&path("one", "status"), "approve a.example/s", failed.clone()).await;
    assert!(
        refused
            .expect_err("refused")
            .message
            .ends_with("user not permitted to sign requests with signerName \"a.example/s\"")
    );
    world.merge(&path("one", "status"), "sign a.example/s", failed).await.expect("its signer");
    let untouched = json!({"metadata": {"labels": {"a": "b"}}});
    world.merge(&path("two", "status"), "anybody", untouched).await.expect("nothing of it is signed");
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "i"}]},
    })
}

#[tokio::test]
async fn pod_security_has_levels_by_default_and_lets_be_whom_it_is_told_to() {
    let configuration = json!({
        "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "baseline"},
        "exemptions": {"usernames": ["root"], "runtimeClasses": ["vm"], "namespaces": ["free"]},
    });
    let security = SecurityConfiguration::of(&configuration).expect("a configuration");
    let config = Config::default();
    let metrics = config.webhook_metrics.clone();
    let world =
        World::new(Config { admission: config.admission.clone().with_security(security), ..config }).await;
    for name in ["free", "bound"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        world.create("@v1/namespaces", "root", namespace).await.expect("a namespace");
    }
    let class = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}, "handler": "vm",
    });
    world.create("node.k8s.io@v1/runtimeclasses", "root", class).await.expect("a class");
    let refused = world.create("@v1/pods/bound", "user", pod("p")).await.expect_err("refused");
    assert_eq!(
        refused.message,
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
    world.create("@v1/pods/bound", "root", pod("by-user")).await.expect("who may");
    world.create("@v1/pods/free", "user", pod("by-namespace")).await.expect("where one may");
    let mut by_class = pod("by-class");
    by_class["spec"]["runtimeClassName"] = json!("vm");
    world.create("@v1/pods/bound", "user", by_class).await.expect("as what one may");
    let counted = metrics.pod_security.counted();
    // Some series are there from the start.
    let evaluations = counted.evaluations.iter().filter(|(_, n)| **n > 0);
    let evaluations: Vec<_> = evaluations.map(|(of, n)| (of.is_allowed, of.mode.as_str(), *n)).collect();
    assert_eq!(evaluations, [(false, "enforce", 1)]);
    assert_eq!(counted.exemptions.values().sum::<u64>(), 3, "{:?}", counted.exemptions);
    assert_eq!(counted.errors.len(), 0);
}

#[tokio::test]
async fn pod_security_counts_what_it_refuses_warns_of_and_notes() {
    let config = Config::default();
    let metrics = config.webhook_metrics.clone();
    let world = World::new(config).await;
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "privileged",
        "pod-security.kubernetes.io/audit": "baseline", "pod-security.kubernetes.io/audit-version": "v1.30",
        "pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/warn-version": "v1.99",
    });
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "told", "labels": labels},
    });
    world.create("@v1/namespaces", "root", namespace).await.expect("a namespace");
    world.create("@v1/pods/told", "user", pod("p")).await.expect("only told of");
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("p")["spec"]});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "s"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    });
    world.create("apps@v1/replicasets/told", "user", set).await.expect("only told of");
    world.create("@v1/pods/default", "user", pod("p")).await.expect("where all may");
    let counted = metrics.pod_security.counted();
    let told: Vec<String> = counted
        .evaluations
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(of, n)| {
            let (decision, level) = (if of.is_allowed { "allow" } else { "deny" }, of.level.as_str());
            format!("{decision} {level}:{} {} {} {n}", of.version, of.mode.as_str(), of.write.resource)
        })
        .collect();
    assert_eq!(
        told,
        [
            "deny baseline:v1.30 audit controller 1",
            "deny baseline:v1.30 audit pod 1",
            "deny restricted:future warn controller 1",
            "deny restricted:future warn pod 1",
            "allow privileged:latest enforce pod 2",
        ]
    );
}

#[tokio::test]
async fn what_is_limited_by_default_takes_a_quota() {
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
        "limitedResources": [{"resource": "pods", "matchContains": ["pods"]}],
    });
    let limited = LimitedResources::of(&configuration).expect("a configuration");
    let config = Config::default();
    let world =
        World::new(Config { admission: config.admission.clone().with_limited(limited), ..config }).await;
    let refused = world.create("@v1/pods/default", "user", pod("p")).await.expect_err("refused");
    assert_eq!(refused.message, "pods \"p\" is forbidden: insufficient quota to consume: count/pods,pods");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    world.create("@v1/configmaps/default", "user", map).await.expect("others are not limited");
    let hard = json!({"pods": "1", "count/pods": "1"});
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard},
    });
    world.create("@v1/resourcequotas/default", "user", quota).await.expect("a quota");
    let status = json!({"status": {"hard": hard, "used": {"pods": "0", "count/pods": "0"}}});
    world.merge("@v1/resourcequotas/default/q/status", "user", status).await.expect("counted");
    world.create("@v1/pods/default", "user", pod("p")).await.expect("within the quota");
    let refused = world.create("@v1/pods/default", "user", pod("q")).await.expect_err("full");
    assert!(refused.message.contains("exceeded quota: q"), "{}", refused.message);
}
