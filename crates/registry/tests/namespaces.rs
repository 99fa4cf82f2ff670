//! What namespaces decide of writes in them, through whole writes, in upstream's words.

use std::sync::Arc;

use forebay_api::{Answer, Api as _, Body};
use forebay_apimachinery::options::{CreateOptions, DeleteOptions};
use forebay_apimachinery::{Caller, Lease, Reason, Status};
use forebay_catalog::{RequestContext, Target};
use forebay_embedded::{Engine, Options};
use forebay_registry::{Admission, Config, Registry};
use forebay_rt::{Clock, Random, Tasks};
use serde_json::{Value, json};

struct World {
    registry: Registry,
    _tasks: Tasks,
}

impl World {
    async fn new() -> World {
        let config = Config { admission: Admission::without(["ServiceAccount"]), ..Config::default() };
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let tasks = Tasks::new();
        let registry = Registry::new(config, engine, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, _tasks: tasks }
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
        world.registry.review(&token, &body, &CreateOptions::default()).wait().await.err().expect("refused"),
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
