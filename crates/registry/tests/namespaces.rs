//! What namespaces decide of writes in them, through whole writes, in upstream's words.

use std::sync::Arc;

use forebay_api::{Answer, Api as _, Body};
use forebay_apimachinery::lease::Ledger;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, UpdateOptions};
use forebay_apimachinery::{Caller, Lease, Reason, Status};
use forebay_catalog::{AuditAnnotations, RequestContext, Target};
use forebay_embedded::{Engine, Options};
use forebay_registry::{Admission, Config, Registry};
use forebay_rt::{Clock, Duration, Random, Tasks};
use serde_json::{Value, json};

struct World {
    registry: Registry,
    clock: Clock,
    _tasks: Tasks,
}

/// Has nothing for anybody.
struct Nothing;

impl Ledger for Nothing {
    fn try_take(&mut self, _: usize) -> bool {
        false
    }
}

impl World {
    async fn new() -> World {
        World::with(Admission::without(["ServiceAccount"])).await
    }

    async fn with(admission: Admission) -> World {
        let config = Config { admission, ..Config::default() };
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let tasks = Tasks::new();
        let registry = Registry::new(config, engine, clock.clone(), Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, clock, _tasks: tasks }
    }

    /// `resource/[namespace/]name/subresource` of the core group.
    fn target(&self, path: &str) -> Target {
        let mut parts = path.split('/').map(String::from);
        let resource = parts.next().expect("a resource");
        let served = self.registry.catalog().resource("", "v1", &resource).expect("served").clone();
        let namespace = if served.namespaced { parts.next() } else { None };
        let caller = Arc::new(Caller { name: "ann".to_owned(), ..Caller::default() }.authenticated());
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

    async fn create(&self, path: &str, body: Value) -> Result<Answer, Status> {
        let body = Body::Json(body.to_string().into());
        self.registry.create(&self.target(path), &body, &CreateOptions::default()).await
    }

    /// A namespace with so many pods that share its host's network, each with a note, and heard of.
    async fn namespace_of_pods(&self, name: &str, pods: usize, note: &str) {
        self.create("namespaces", json!({"metadata": {"name": name}})).await.expect("a namespace");
        for at in 0..pods {
            let spec = json!({"hostNetwork": true, "containers": [{"name": "c", "image": "i"}]});
            let meta = json!({"name": format!("p{at}"), "annotations": {"note": note}});
            let pod = json!({"metadata": meta, "spec": spec});
            self.create(&format!("pods/{name}"), pod).await.expect("a pod");
        }
        let pods = self.target("pods/n").served;
        let deadline = self.clock.now() + Duration::from_secs(60);
        pods.stored().expect("a store").cacher.fresh(deadline).await.expect("heard of");
    }

    /// What is told of a namespace that is given the level `baseline`.
    async fn told(&self, target: &Target) -> Vec<String> {
        let name = target.name();
        let labels = json!({"pod-security.kubernetes.io/enforce": "baseline"});
        let body = json!({"metadata": {"name": name, "labels": labels}});
        let body = Body::Json(body.to_string().into());
        let answer = self.registry.update(target, &body, &UpdateOptions::default()).await;
        answer.expect("labelled").warnings
    }
}

/// What is created of subresources in `namespace`, and what becomes of each.
async fn of_subresources(world: &World, namespace: &str) -> Vec<Status> {
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let token = world.target(&format!("serviceaccounts/{namespace}/s/token"));
    let body = Body::Json(json!({"spec": {}}).to_string().into());
    vec![
        world.create(&format!("pods/{namespace}/p/binding"), binding).await.expect_err("refused"),
        world.create(&format!("pods/{namespace}/p/eviction"), eviction).await.expect_err("refused"),
        world
            .registry
            .review(&token, &body, &CreateOptions::default(), None)
            .wait()
            .await
            .err()
            .expect("refused"),
    ]
}

#[tokio::test]
async fn nothing_is_created_of_a_subresource_where_the_namespace_ends() {
    let world = World::new().await;
    world.create("namespaces", json!({"metadata": {"name": "ends"}})).await.expect("a namespace");
    world.registry.delete(&world.target("namespaces/ends"), &DeleteOptions::default()).await.expect("ends");
    for (refusal, what) in of_subresources(&world, "ends").await.iter().zip([
        "pods \"p\"",
        "pods \"p\"",
        "serviceaccounts \"s\"",
    ]) {
        let why = "unable to create new content in namespace ends because it is being terminated";
        assert_eq!(refusal.message, format!("{what} is forbidden: {why}"));
        assert_eq!(refusal.reason, Reason::Forbidden);
    }
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_said_before_what_is_not_in_it() {
    let world = World::new().await;
    for refusal in of_subresources(&world, "none").await {
        assert_eq!(refusal.message, "namespaces \"none\" not found");
    }
}

#[tokio::test]
async fn pods_are_looked_at_for_as_long_as_their_namespaces_writer_waits() {
    let world = World::new().await;
    world.namespace_of_pods("n", 3, "").await;
    let mut hurried = world.target("namespaces/n");
    hurried.context.deadline = Some(world.clock.now());
    let only = |first: usize| {
        format!("new PodSecurity enforce level only checked against the first {first} of 3 existing pods")
    };
    let violate =
        "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"";
    let told = world.told(&hurried).await;
    assert_eq!(told, [only(1), violate.to_owned(), "p0: host namespaces".to_owned()]);

    let unhurried = world.target("namespaces/n");
    let body = Body::Json(json!({"metadata": {"name": "n"}}).to_string().into());
    world.registry.update(&unhurried, &body, &UpdateOptions::default()).await.expect("without a level");
    let told = world.told(&unhurried).await;
    assert_eq!(told, [violate, "p0 (and 2 other pods): host namespaces"]);
}

#[tokio::test]
async fn pods_for_which_there_is_no_room_are_not_looked_at() {
    let world = World::new().await;
    world.namespace_of_pods("n", 2, &"x".repeat(200 << 10)).await;
    // As much as the namespace itself takes, and not a pod beside it.
    let mut poor = world.target("namespaces/n");
    poor.lease = Lease::new(Nothing, 128 << 10);
    let told = world.told(&poor).await;
    let none = "new PodSecurity enforce level only checked against the first 0 of 2 existing pods";
    assert_eq!(told, [none]);
}

#[tokio::test]
async fn what_is_in_a_namespace_that_is_not_there_has_no_level() {
    let world = World::with(Admission::without(["ServiceAccount", "NamespaceLifecycle"])).await;
    let create = async |path: &str, body: Value| {
        let audit = Arc::new(AuditAnnotations::default());
        let mut target = world.target(path);
        target.context.audit = Some(audit.clone());
        let body = Body::Json(body.to_string().into());
        let made = world.registry.create(&target, &body, &CreateOptions::default()).await;
        let noted: Vec<(String, String)> = audit.take().into_iter().collect();
        (made.err().map(|refusal| refusal.message), noted)
    };
    let error = |why: String| vec![("pod-security.kubernetes.io/error".to_owned(), why)];
    let (why, details) = ("failed to lookup namespace \"none\"", "namespaces \"none\" not found");
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let (refused, noted) = create("pods/none", json!({"metadata": {"name": "p"}, "spec": spec})).await;
    assert_eq!(refused, Some(format!("Internal error occurred: {why}")));
    assert_eq!(noted, error(format!("Internal error occurred: {why}: {details}")));
    // What makes pods is never refused.
    let template = json!({"metadata": {"name": "t"}, "template": {"spec": spec}});
    let (refused, noted) = create("podtemplates/none", template).await;
    assert_eq!((refused, noted), (None, error(format!("{why}: {details}"))));
}
