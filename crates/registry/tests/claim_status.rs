//! Who may write which part of a resource claim's status, through whole writes, in upstream's words.

use std::sync::Arc;

use forebay_api::{Answer, Authorizer, Because, Body, Decision, Eventual, PatchKind, Rules};
use forebay_apimachinery::options::{CreateOptions, PatchOptions};
use forebay_apimachinery::{About, Attributes, Caller, Lease, Reason, Status};
use forebay_catalog::{RequestContext, Target};
use forebay_embedded::{Engine, Options};
use forebay_registry::{Config, Registry};
use forebay_rt::{Clock, Random, Tasks};
use serde_json::{Value, json};

struct World {
    registry: Registry,
    _tasks: Tasks,
}

/// Lets everybody do what a group of theirs says: `patch binding /`, with the namespace and the name.
struct ByGroups;

impl Authorizer for ByGroups {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        let About::Resource(of) = asked.about else { return Eventual::Now(Decision::Deny(Because::Unsaid)) };
        let said = format!("{} {} {}/{}", asked.verb.as_str(), of.subresource, of.namespace, of.name);
        Eventual::Now(match asked.caller.groups.contains(&said) {
            true => Decision::Allow(Because::Unsaid),
            false => Decision::NoOpinion(Because::Said("nobody says so".into())),
        })
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}

impl World {
    async fn new() -> World {
        let config = Config { authorizer: Arc::new(ByGroups), ..Config::default() };
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let tasks = Tasks::new();
        let registry = Registry::new(config, engine, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, _tasks: tasks }
    }

    fn target(&self, name: Option<&str>, caller: Option<Caller>) -> Target {
        let catalog = self.registry.catalog();
        let served = catalog.resource("resource.k8s.io", "v1", "resourceclaims").expect("served").clone();
        Target {
            served,
            namespace: Some("default".into()),
            name: name.map(Into::into),
            subresource: name.map(|_| "status".into()),
            caller: caller.map(Arc::new),
            lease: Lease::of_server(),
            context: RequestContext::default(),
        }
    }

    async fn claim(&self) {
        let request = json!({"name": "r", "exactly": {"deviceClassName": "c"}});
        let claim = json!({"metadata": {"name": "own"}, "spec": {"devices": {"requests": [request]}}});
        let (target, body) = (self.target(None, None), Body::Json(claim.to_string().into()));
        self.registry.create(&target, &body, &CreateOptions::default()).await.expect("a claim");
    }

    /// What comes of a patch of the status by a service account on node `n` with these rights.
    async fn patch(&self, rights: &[&str], status: Value) -> Result<Answer, Status> {
        let name = "system:serviceaccount:default:driver".to_owned();
        let groups = rights.iter().map(|right| (*right).to_owned()).collect();
        let node = ("authentication.kubernetes.io/node-name".to_owned(), vec!["n".to_owned()]);
        let caller = Caller { name, groups, extra: [node].into(), ..Caller::default() };
        let body = json!({ "status": status }).to_string();
        let target = self.target(Some("own"), Some(caller));
        self.registry.patch(&target, PatchKind::Merge, body.as_bytes(), &PatchOptions::default()).await
    }
}

fn allocation(node: &str) -> Value {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    json!({
        "devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "a"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    })
}

fn device() -> Value {
    json!([{"driver": "d.example.com", "pool": "p", "device": "a", "data": {"k": "v"}}])
}

const BIND: &str = "patch binding /";

#[tokio::test]
async fn what_is_allocated_is_written_by_who_may_bind_claims() {
    let world = World::new().await;
    world.claim().await;
    let refused = world.patch(&[], json!({"allocation": allocation("n")})).await.expect_err("refused");
    assert_eq!(refused.reason, Reason::Invalid);
    assert_eq!(
        refused.message,
        "ResourceClaim.resource.k8s.io \"own\" is invalid: status.allocation: Forbidden: changing status.allocation or \
         status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"patch\" permission: \
         resourceclaims.resource.k8s.io is forbidden: User \"system:serviceaccount:default:driver\" cannot patch resource \
         \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster scope: nobody says so"
    );
    world.patch(&[BIND], json!({"allocation": allocation("n")})).await.expect("may bind");
    let reserved = json!({"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]});
    assert_eq!(world.patch(&[], reserved.clone()).await.expect_err("refused").reason, Reason::Invalid);
    world.patch(&[BIND], reserved.clone()).await.expect("may bind");
    // What stays as it is takes no right.
    world.patch(&[], reserved).await.expect("changes nothing");
}

#[tokio::test]
async fn a_driver_speaks_for_its_own_devices_and_on_its_node_by_a_smaller_right() {
    let near = "associated-node:patch driver default/d.example.com";
    let far = "arbitrary-node:patch driver default/d.example.com";
    for (node, rights, is_allowed) in [
        ("n", vec![near], true),
        ("n", vec![far], true),
        ("n", vec![], false),
        ("n", vec![BIND], false),
        ("other", vec![near], false),
        ("other", vec![far], true),
    ] {
        let world = World::new().await;
        world.claim().await;
        world.patch(&[BIND], json!({"allocation": allocation(node)})).await.expect("allocated");
        let said = world.patch(&rights, json!({"devices": device()})).await;
        assert_eq!(said.is_ok(), is_allowed, "{node} {rights:?}: {:?}", said.err());
        if let Err(refusal) = said {
            let (first, verbs) = match node {
                "n" => ("associated-node:patch", "associated-node:patch arbitrary-node:patch"),
                _ => ("arbitrary-node:patch", "arbitrary-node:patch"),
            };
            let why = format!(
                "status.devices: Forbidden: changing status.devices requires resource=\"resourceclaims/driver\", \
                 verb=\"[{verbs}]\" permission: resourceclaims.resource.k8s.io \"d.example.com\" is forbidden: User \
                 \"system:serviceaccount:default:driver\" cannot {first} resource \"resourceclaims/driver\" in API group \
                 \"resource.k8s.io\" in the namespace \"default\": nobody says so"
            );
            assert!(refusal.message.ends_with(&why), "{}", refusal.message);
        }
    }
}
