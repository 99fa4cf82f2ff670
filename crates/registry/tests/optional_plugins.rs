//! Plugins that are off unless somebody turns them on, through whole writes, in upstream's words.

use std::sync::Arc;

use forebay_api::{Answer, Authorizer, Because, Body, Decision, Eventual, Rules};
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, UpdateOptions};
use forebay_apimachinery::{About, Attributes, Caller, Lease, Reason, Status};
use forebay_catalog::{RequestContext, Target};
use forebay_embedded::{Engine, Options};
use forebay_registry::{
    Admission, Config, DefaultTolerations, EventRates, NodeSelectors, PluginSettings, Registry,
};
use forebay_rt::{Clock, Random, Tasks};
use serde_json::{Value, json};

struct World {
    registry: Registry,
    _tasks: Tasks,
}

/// Lets everybody do what is in their name: `delete configmaps,update pods/finalizers`.
struct ByName;

impl Authorizer for ByName {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        let About::Resource(of) = asked.about else { return Eventual::Now(Decision::Deny(Because::Unsaid)) };
        let part = if of.subresource.is_empty() { "" } else { "/" };
        let said = format!("{} {}{part}{}", asked.verb.as_str(), of.resource, of.subresource);
        Eventual::Now(match asked.caller.name.split(',').any(|may| may == said) {
            true => Decision::Allow(Because::Unsaid),
            false => Decision::NoOpinion(Because::Said("nobody says so".into())),
        })
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}

impl World {
    async fn with(plugin: &str, settings: PluginSettings) -> World {
        let admission = Admission::without(["ServiceAccount"]).with([plugin]).with_settings(settings);
        let config = Config { admission, authorizer: Arc::new(ByName), ..Config::default() };
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let tasks = Tasks::new();
        let registry = Registry::new(config, engine, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, _tasks: tasks }
    }

    /// `resource/[namespace/]name` of the core group, by somebody.
    fn target(&self, path: &str, who: &str) -> Target {
        let mut parts = path.split('/').map(String::from);
        let resource = parts.next().expect("a resource");
        let served = self.registry.catalog().resource("", "v1", &resource).expect("served").clone();
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

    async fn update(&self, path: &str, who: &str, body: Value) -> Result<Value, Status> {
        let body = Body::Json(body.to_string().into());
        self.registry.update(&self.target(path, who), &body, &UpdateOptions::default()).await.map(object)
    }
}

fn object(answer: Answer) -> Value {
    serde_json::from_slice(&answer.outcome.json()).expect("an answer is JSON")
}

fn refused(done: Result<Value, Status>) -> String {
    done.expect_err("refused").message
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    for (member, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][member] = value.clone();
    }
    pod
}

fn map(name: &str, owners: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "ownerReferences": owners },
    })
}

#[tokio::test]
async fn who_changes_owners_may_delete_the_object_and_finalize_those_it_blocks() {
    let world = World::with("OwnerReferencesPermissionEnforcement", PluginSettings::default()).await;
    let owner = |kind: &str, blocks: bool| json!([{ "apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "blockOwnerDeletion": blocks }]);
    world.create("configmaps/default", "a", map("m", owner("Pod", false))).await.expect("who creates may");
    let blocking = refused(world.create("configmaps/default", "a", map("n", owner("Pod", true))).await);
    assert_eq!(
        blocking,
        "configmaps \"n\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource \
         you can't set finalizers on: nobody says so, <nil>"
    );
    let may = "update pods/finalizers";
    world.create("configmaps/default", may, map("n", owner("Pod", true))).await.expect("may");
    world
        .create("configmaps/default", "update */finalizers", map("k", owner("Pod", true)))
        .await
        .expect("may");
    let unknown = refused(world.create("configmaps/default", may, map("l", owner("Unknown", true))).await);
    assert_eq!(
        unknown,
        "configmaps \"l\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping \
         for APIVersion v1 Kind Unknown: no matches for kind \"Unknown\" in version \"v1\""
    );
    let without = refused(world.update("configmaps/default/m", "a", map("m", json!([]))).await);
    assert_eq!(
        without,
        "configmaps \"m\" is forbidden: cannot set an ownerRef on a resource you can't delete: nobody says so, <nil>"
    );
    world.update("configmaps/default/m", "a", map("m", owner("Pod", false))).await.expect("nothing changes");
    world.update("configmaps/default/m", "delete configmaps", map("m", json!([]))).await.expect("may");
}

#[tokio::test]
async fn images_are_pulled_and_external_ips_refused() {
    let world = World::with("AlwaysPullImages", PluginSettings::default()).await;
    let spec = json!({ "containers": [{ "name": "c", "image": "i:1", "imagePullPolicy": "Never" }] });
    let made = world.create("pods/default", "a", pod("p", spec)).await.expect("created");
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");

    let world = World::with("DenyServiceExternalIPs", PluginSettings::default()).await;
    let service = |ips: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s" },
            "spec": { "ports": [{ "port": 80 }], "externalIPs": ips },
        })
    };
    let denied = "services \"s\" is forbidden: Use of external IPs is denied by admission control";
    assert_eq!(refused(world.create("services/default", "a", service(json!(["1.2.3.4"]))).await), denied);
    world.create("services/default", "a", service(json!([]))).await.expect("created");
}

#[tokio::test]
async fn a_namespace_is_made_where_it_is_missing() {
    let world = World::with("NamespaceAutoProvision", PluginSettings::default()).await;
    world.create("configmaps/fresh", "a", map("m", json!([]))).await.expect("created");
    let made = world.registry.get(&world.target("namespaces/fresh", "a"), "").await;
    assert!(made.is_ok(), "{made:?}");
    let plain = World::with("AlwaysAdmit", PluginSettings::default()).await;
    let missing = plain.create("configmaps/fresh", "a", map("m", json!([]))).await.expect_err("missing");
    assert_eq!(missing.reason, Reason::NotFound);
}

#[tokio::test]
async fn pods_run_where_their_namespace_says() {
    let said = json!({ "podNodeSelectorPluginConfig": {
        "clusterDefaultNodeSelector": "disk=fast", "narrow": "disk=fast,zone=a",
    } });
    let settings = PluginSettings {
        node_selectors: NodeSelectors::of(&said).expect("read"),
        ..PluginSettings::default()
    };
    let world = World::with("PodNodeSelector", settings).await;
    for (name, annotation) in [("narrow", None), ("own", Some("zone=b"))] {
        let mut namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        if let Some(annotation) = annotation {
            namespace["metadata"]["annotations"] =
                json!({ "scheduler.alpha.kubernetes.io/node-selector": annotation });
        }
        world.create("namespaces", "a", namespace).await.expect("created");
    }
    let made = world.create("pods/own", "a", pod("p", json!({ "nodeSelector": { "x": "y" } }))).await;
    assert_eq!(made.expect("created")["spec"]["nodeSelector"], json!({ "x": "y", "zone": "b" }));
    let other = world.create("pods/own", "a", pod("q", json!({ "nodeSelector": { "zone": "c" } }))).await;
    assert_eq!(
        refused(other),
        "pods \"q\" is forbidden: pod node label selector conflicts with its namespace node label selector"
    );
    let made = world.create("pods/narrow", "a", pod("p", json!({}))).await.expect("created");
    assert_eq!(made["spec"]["nodeSelector"], json!({ "disk": "fast" }));
    let wide = world.create("pods/narrow", "a", pod("q", json!({ "nodeSelector": { "x": "y" } }))).await;
    assert_eq!(
        refused(wide),
        "pods \"q\" is forbidden: pod node label selector labels conflict with its namespace whitelist"
    );
}

#[tokio::test]
async fn pods_tolerate_what_their_namespace_says_and_no_more() {
    let said = json!({
        "apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration",
        "default": [{ "key": "a", "operator": "Exists" }],
        "whitelist": [{ "key": "a", "operator": "Exists" }, { "key": "node.kubernetes.io/memory-pressure", "operator": "Exists" }, { "key": "node.kubernetes.io/not-ready", "operator": "Exists" }, { "key": "node.kubernetes.io/unreachable", "operator": "Exists" }],
    });
    let settings = PluginSettings {
        tolerations: DefaultTolerations::of(&said).expect("read"),
        ..PluginSettings::default()
    };
    let world = World::with("PodTolerationRestriction", settings).await;
    let made = world.create("pods/default", "a", pod("p", json!({}))).await.expect("created");
    let keys = |pod: &Value| -> Vec<String> {
        let all = pod["spec"]["tolerations"].as_array().into_iter().flatten();
        all.map(|one| one["key"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert!(keys(&made).contains(&"a".to_owned()), "{made:#?}");
    let other = pod("q", json!({ "tolerations": [{ "key": "b", "operator": "Exists" }] }));
    let why = refused(world.create("pods/default", "a", other).await);
    assert!(why.ends_with("conflict with its cluster whitelist"), "{why}");
}

#[tokio::test]
async fn events_are_written_at_a_rate() {
    let said = json!({
        "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",
        "limits": [{ "type": "Server", "qps": 1, "burst": 1 }],
    });
    let settings =
        PluginSettings { event_rates: EventRates::of(&said).expect("read"), ..PluginSettings::default() };
    let world = World::with("EventRateLimit", settings).await;
    let event = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": name },
            "involvedObject": { "kind": "Pod", "namespace": "default", "name": "p" },
        })
    };
    // So fast that less than a second goes by.
    world.create("events/default", "a", event("one")).await.expect("created");
    let many = world.create("events/default", "a", event("two")).await.expect_err("refused");
    assert_eq!(many.reason, Reason::TooManyRequests);
    assert_eq!(many.message, "Too many requests: limit reached on type Server for key ");
}

#[tokio::test]
async fn nothing_is_written_where_all_is_denied_but_by_the_server() {
    let world = World::with("AlwaysDeny", PluginSettings::default()).await;
    let why = refused(world.create("configmaps/default", "a", map("m", json!([]))).await);
    assert_eq!(why, "configmaps \"m\" is forbidden: admission control is denying all modifications");
    let target = world.target("namespaces/default", "a");
    assert!(world.registry.delete(&target, &DeleteOptions::default()).await.is_err());
    let own = Target { caller: None, ..world.target("configmaps/default", "a") };
    let body = Body::Json(map("m", json!([])).to_string().into());
    world.registry.create(&own, &body, &CreateOptions::default()).await.expect("the server's own");
}
