//! The namespace controller on a registry in memory.

mod world;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_api::{
    Authorizer, Because, Body, BoxFuture, Decision, Elsewhere, Eventual, LeftElsewhere, ResourceElsewhere,
    Rules, ServedElsewhere,
};
use forebay_apimachinery::options::{CreateOptions, DeleteOptions};
use forebay_apimachinery::{Attributes, Caller, Reason, Status};
use forebay_catalog::Target;
use serde_json::{Value, json};
use tokio::sync::Notify;
use world::{Everything, World, held, map, namespace, pod, tool, tools, widget};

const CONTROLLER: &str = "namespace-controller";
const X: &str = "@v1/namespaces/x";

async fn with_namespace(controllers: &str) -> World {
    let world = World::with(controllers).await.with_widgets().await;
    world.create("@v1/namespaces", namespace("x")).await;
    world
}

fn condition<'a>(namespace: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = namespace["status"]["conditions"].as_array()?;
    let one = conditions.iter().find(|one| one["type"] == kind)?;
    Some((one["status"].as_str()?, one["message"].as_str()?))
}

#[tokio::test]
async fn a_namespace_goes_with_everything_in_it() {
    let world = with_namespace(CONTROLLER).await;
    for number in 0..30 {
        world.create("@v1/configmaps/x", map(&format!("m{number}"))).await;
    }
    world.create("@v1/configmaps/default", map("elsewhere")).await;
    world.create("@v1/pods/x", pod("p")).await;
    world.create("example.io@v1/widgets/x", widget("w")).await;
    world.delete(X, None).await;
    world.until_gone(X).await;
    for path in ["@v1/configmaps/x/m0", "@v1/configmaps/x/m29", "@v1/pods/x/p", "example.io@v1/widgets/x/w"] {
        assert!(world.find(path).await.is_none(), "{path}");
    }
    assert!(world.find("@v1/configmaps/default/elsewhere").await.is_some());
    world.create("@v1/namespaces", namespace("x")).await;
    world.create("@v1/configmaps/x", map("m0")).await;
}

#[tokio::test]
async fn what_is_stored_in_a_version_that_is_not_served_goes_with_its_namespace() {
    let world = with_namespace(CONTROLLER).await;
    world.create("apiextensions.k8s.io@v1/customresourcedefinitions", tools()).await;
    world.create("example.io@v2/tools/x", tool("t")).await;
    world.create("example.io@v2/tools/default", tool("elsewhere")).await;
    world.delete(X, None).await;
    world.until_gone(X).await;
    assert!(world.find("example.io@v2/tools/x/t").await.is_none());
    assert!(world.find("example.io@v2/tools/default/elsewhere").await.is_some());
}

#[tokio::test]
async fn a_finalizer_holds_a_namespace_and_the_conditions_say_so() {
    let world = with_namespace(CONTROLLER).await;
    world.create("example.io@v1/widgets/x", held(widget("w"), "example.io/hold")).await;
    world.create("@v1/configmaps/x", map("m")).await;
    world.delete(X, None).await;
    world
        .until(X, |found| {
            condition(found.expect("held"), "NamespaceFinalizersRemaining")
                .is_some_and(|(is, _)| is == "True")
        })
        .await;
    let found = world.get(X).await;
    for (kind, want) in [
        ("NamespaceDeletionDiscoveryFailure", ("False", "All resources successfully discovered")),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            ("False", "All legacy kube types successfully parsed"),
        ),
        (
            "NamespaceDeletionContentFailure",
            ("False", "All content successfully deleted, may be waiting on finalization"),
        ),
        (
            "NamespaceContentRemaining",
            ("True", "Some resources are remaining: widgets.example.io has 1 resource instances"),
        ),
        (
            "NamespaceFinalizersRemaining",
            (
                "True",
                "Some content in the namespace has finalizers remaining: example.io/hold in 1 resource instances",
            ),
        ),
    ] {
        assert_eq!(condition(&found, kind), Some(want), "{kind}");
    }
    assert!(world.find("@v1/configmaps/x/m").await.is_none());
    let refused = world.try_create("@v1/configmaps/x", map("late")).await.expect_err("no more");
    assert_eq!(refused.reason, Reason::Forbidden);
    world.merge("example.io@v1/widgets/x/w", json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone(X).await;
}

#[tokio::test]
async fn a_pod_on_a_node_is_waited_for_and_the_rest_waits_with_it() {
    let world = with_namespace(CONTROLLER).await;
    let mut bound = pod("p");
    bound["spec"]["nodeName"] = json!("n");
    world.create("@v1/pods/x", bound).await;
    world.create("@v1/configmaps/x", map("m")).await;
    world.delete(X, None).await;
    world
        .until(X, |found| {
            condition(found.expect("held"), "NamespaceContentRemaining").is_some_and(|(is, _)| is == "True")
        })
        .await;
    let found = world.get(X).await;
    let remaining = condition(&found, "NamespaceContentRemaining").expect("told").1;
    assert_eq!(remaining, "Some resources are remaining: pods. has 1 resource instances");
    assert_eq!(condition(&found, "NamespaceDeletionContentFailure").expect("told").0, "False");
    assert!(world.find("@v1/configmaps/x/m").await.is_some(), "pods may still use it");
    // Its grace is over, and no kubelet has ended it.
    world.hand.advance_ms(31_000);
    world
        .until(X, |found| {
            condition(found.expect("held"), "NamespaceDeletionContentFailure")
                .is_some_and(|(is, _)| is == "True")
        })
        .await;
    let found = world.get(X).await;
    assert_eq!(
        condition(&found, "NamespaceDeletionContentFailure").expect("told").1,
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: x for gvr: /v1, Resource=pods"
    );
    // What a kubelet does in the end.
    let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    world.registry.delete(&world.target("@v1/pods/x/p"), &options).await.expect("deletes");
    world.until_gone(X).await;
    assert!(world.find("@v1/configmaps/x/m").await.is_none());
}

#[tokio::test]
async fn a_finalizer_of_somebody_else_keeps_the_namespace() {
    let world = with_namespace(CONTROLLER).await;
    let mut own = world.get(X).await;
    own["spec"]["finalizers"] = json!(["kubernetes", "example.io/own"]);
    world.update("@v1/namespaces/x/finalize", own).await;
    world.create("@v1/configmaps/x", map("m")).await;
    world.delete(X, None).await;
    world.until(X, |found| found.expect("held")["spec"]["finalizers"] == json!(["example.io/own"])).await;
    assert!(world.find("@v1/configmaps/x/m").await.is_none());
    let mut own = world.get(X).await;
    own["spec"]["finalizers"] = json!([]);
    world.update("@v1/namespaces/x/finalize", own).await;
    world.until_gone(X).await;
}

#[tokio::test]
async fn a_namespace_held_by_metadata_goes_when_it_is_let_go() {
    let world = World::with(CONTROLLER).await;
    world.create("@v1/namespaces", held(namespace("x"), "example.io/hold")).await;
    world.delete(X, None).await;
    world
        .until(X, |found| {
            found.expect("held")["spec"].get("finalizers").is_none_or(|left| left == &json!([]))
        })
        .await;
    world.merge(X, json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone(X).await;
}

#[tokio::test]
async fn a_deletion_that_was_begun_is_finished_after_a_restart() {
    let world = with_namespace("").await;
    world.create("example.io@v1/widgets/x", held(widget("w"), "example.io/hold")).await;
    world.create("@v1/configmaps/x", map("m")).await;
    world.delete(X, None).await;
    assert_eq!(world.get(X).await["status"]["phase"], "Terminating");
    let world = world.restart(CONTROLLER).await;
    world.until_gone("@v1/configmaps/x/m").await;
    let world = world.restart(CONTROLLER).await;
    world.merge("example.io@v1/widgets/x/w", json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone(X).await;
}

/// Deletes what nobody can read, as somebody who knows may ask for.
async fn delete_unreadable(world: &World, path: &str) -> Result<(), Status> {
    let options = DeleteOptions {
        ignore_store_read_error_with_cluster_breaking_potential: Some(true),
        ..DeleteOptions::default()
    };
    world.registry.delete(&world.target(path), &options).await.map(drop)
}

#[tokio::test]
async fn what_cannot_be_read_holds_its_namespace_until_somebody_deletes_it() {
    let world = with_namespace(CONTROLLER).await;
    let keys = ["/registry/secrets/x/hidden", "/registry/example.io/widgets/x/hidden"];
    for key in keys {
        world.put_raw(key, b"k8s:enc:aescbc:v1:key1:xxxx").await;
    }
    world.put_raw("/registry/secrets/default/hidden", b"elsewhere").await;
    world.create("@v1/configmaps/x", map("m")).await;
    let refused =
        world.registry.get(&world.target("@v1/secrets/x/hidden"), "").await.expect_err("unreadable");
    assert!(refused.message.contains("StorageError: corrupt object"), "{}", refused.message);
    let options = DeleteOptions::default();
    let refused = world.registry.delete(&world.target("@v1/secrets/x/hidden"), &options).await;
    assert!(refused.is_err() && world.has_raw(keys[0]).await, "not without being asked for");

    world.delete(X, None).await;
    let failure = |found: &Value| {
        let (is, why) = condition(found, "NamespaceDeletionContentFailure")?;
        (is == "True").then(|| why.to_owned())
    };
    world.until(X, |found| failure(found.expect("held")).is_some()).await;
    assert_eq!(
        failure(&world.get(X).await).as_deref(),
        Some(
            "Failed to delete all resource types, 2 remaining: failed to read one or more secrets from the storage, \
             failed to read one or more widgets.example.io from the storage"
        )
    );
    world.until_gone("@v1/configmaps/x/m").await;
    // A server that starts again knows as much.
    let world = world.restart(CONTROLLER).await;
    assert!(world.find(X).await.is_some() && world.has_raw(keys[0]).await && world.has_raw(keys[1]).await);
    delete_unreadable(&world, "@v1/secrets/x/hidden").await.expect("deletes");
    world
        .until(X, |found| {
            failure(found.expect("held")).is_some_and(|why| why.contains(" types, 1 remaining: "))
        })
        .await;
    delete_unreadable(&world, "example.io@v1/widgets/x/hidden").await.expect("deletes");
    world.until_gone(X).await;
    for key in keys {
        assert!(!world.has_raw(key).await, "{key}");
    }
    assert!(world.has_raw("/registry/secrets/default/hidden").await);
    let gone = delete_unreadable(&world, "@v1/secrets/x/hidden").await.expect_err("it is gone");
    assert_eq!(gone.reason, Reason::Invalid);
}

#[tokio::test]
async fn what_cannot_be_read_holds_its_definition_until_somebody_deletes_it() {
    let world = with_namespace("").await;
    let (crd, key) = ("apiextensions.k8s.io@v1/customresourcedefinitions/widgets.example.io", HIDDEN_WIDGET);
    world.put_raw(key, b"{").await;
    world.create("example.io@v1/widgets/x", widget("w")).await;
    world.delete(crd, None).await;
    world.until_gone("example.io@v1/widgets/x/w").await;
    let is_told = |found: Option<&Value>| {
        let found = found.expect("held");
        condition(found, "Terminating").is_some_and(|(_, why)| why == UNLISTED)
    };
    world.until(crd, is_told).await;
    assert!(world.has_raw(key).await);
    delete_unreadable(&world, "example.io@v1/widgets/x/hidden").await.expect("deletes");
    world.until_gone(crd).await;
}

const HIDDEN_WIDGET: &str = "/registry/example.io/widgets/x/hidden";
const UNLISTED: &str =
    "could not list instances: failed to read one or more widgets.example.io from the storage";

/// Who asks whether somebody may bind a role waits for the answer, as for a webhook.
#[derive(Default)]
struct SlowToAnswer {
    asked: Notify,
    answers: Notify,
}

impl Authorizer for SlowToAnswer {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        let allowed = Decision::Allow(Because::Unsaid);
        if asked.verb.as_str() != "bind" {
            return Eventual::Now(allowed);
        }
        Eventual::later(async move {
            self.asked.notify_one();
            self.answers.notified().await;
            allowed
        })
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}

/// What becomes of a RoleBinding in `x` that was admitted before `meanwhile`, and is asked about until then.
async fn bound(held_by: Option<&str>, meanwhile: impl AsyncFnOnce(&World)) -> (World, Result<(), Status>) {
    let slow = Arc::new(SlowToAnswer::default());
    let world = World::asking(slow.clone(), CONTROLLER).await;
    let first = match held_by {
        Some(finalizer) => held(namespace("x"), finalizer),
        None => namespace("x"),
    };
    world.create("@v1/namespaces", first).await;
    let caller = Caller { name: "somebody".to_owned(), ..Caller::default() };
    let target = Target { caller: Some(Arc::new(caller)), ..world.target(BINDINGS) };
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin" });
    let body = Body::Value(json!({ "metadata": { "name": "b" }, "roleRef": role }));
    let options = CreateOptions::default();
    let (created, ()) = tokio::join!(world.registry.create(&target, &body, &options), async {
        slow.asked.notified().await;
        meanwhile(&world).await;
        slow.answers.notify_one();
    });
    (world, created.map(drop))
}

const BINDINGS: &str = "rbac.authorization.k8s.io@v1/rolebindings/x";

#[tokio::test]
async fn what_was_admitted_is_not_stored_once_its_namespace_is_gone() {
    let end = async |world: &World| {
        world.delete(X, None).await;
        world.until_gone(X).await;
    };
    let (world, created) = bound(None, end).await;
    let refused = created.expect_err("nobody would ever delete it");
    assert_eq!((refused.reason, &*refused.message), (Reason::NotFound, "namespaces \"x\" not found"));
    world.create("@v1/namespaces", namespace("x")).await;
    assert!(world.find(&format!("{BINDINGS}/b")).await.is_none());
}

#[tokio::test]
async fn what_was_admitted_to_a_namespace_does_not_turn_up_in_the_next_one_of_its_name() {
    let replace = async |world: &World| {
        world.delete(X, None).await;
        world.until_gone(X).await;
        world.create("@v1/namespaces", namespace("x")).await;
    };
    let (world, created) = bound(None, replace).await;
    assert_eq!(created.expect_err("it is another one").reason, Reason::NotFound);
    assert!(world.find(&format!("{BINDINGS}/b")).await.is_none());
}

#[tokio::test]
async fn what_was_admitted_is_refused_once_its_namespace_is_on_its_way_out() {
    let (_, created) = bound(Some("example.io/hold"), async |world| world.delete(X, None).await).await;
    let refused = created.expect_err("no more");
    assert_eq!(refused.reason, Reason::Forbidden);
    let why = "unable to create new content in namespace x because it is being terminated";
    assert!(refused.message.ends_with(why), "{}", refused.message);
}

#[tokio::test]
async fn what_was_admitted_is_stored_where_its_namespace_has_only_changed() {
    let label = async |world: &World| {
        world.merge(X, json!({ "metadata": { "labels": { "a": "b" } } })).await;
    };
    let (world, created) = bound(None, label).await;
    created.expect("it lives");
    assert!(world.find(&format!("{BINDINGS}/b")).await.is_some());
}

/// A server of `flunders`, some of which are in `x`.
struct FlunderServer(Mutex<Flunders>);

struct Flunders {
    is_there: bool,
    in_x: usize,
    finalizer: Option<&'static str>,
    /// In whose name they were deleted.
    deleted_by: Vec<String>,
}

impl FlunderServer {
    fn state(&self) -> MutexGuard<'_, Flunders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Elsewhere for FlunderServer {
    fn served(&self) -> Result<ServedElsewhere, Status> {
        let (group, version) = ("wardle.example.com".into(), "v1".into());
        let flunders =
            ResourceElsewhere { group, version, resource: "flunders".into(), has_collections: true };
        Ok(match self.state().is_there {
            true => ServedElsewhere { resources: vec![flunders], unknown: Vec::new() },
            false => {
                ServedElsewhere { resources: Vec::new(), unknown: vec!["wardle.example.com/v1".to_owned()] }
            }
        })
    }

    fn delete_all<'a>(
        &'a self,
        caller: &'a Caller,
        of: &'a ResourceElsewhere,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<LeftElsewhere, Status>> {
        Box::pin(async move {
            let mut state = self.state();
            assert_eq!((&*of.resource, namespace), ("flunders", "x"));
            state.deleted_by.push(caller.name.clone());
            let Some(finalizer) = state.finalizer else {
                state.in_x = 0;
                return Ok(LeftElsewhere::default());
            };
            Ok(LeftElsewhere { count: state.in_x, finalizers: vec![finalizer.to_owned(); state.in_x] })
        })
    }
}

/// A world beside such a server, with a namespace `x`.
async fn beside(is_there: bool, finalizer: Option<&'static str>) -> (World, Arc<FlunderServer>) {
    let state = Flunders { is_there, in_x: 2, finalizer, deleted_by: Vec::new() };
    let server = Arc::new(FlunderServer(Mutex::new(state)));
    let world = World::beside(Some(server.clone()), Arc::new(Everything), CONTROLLER).await;
    world.create("@v1/namespaces", namespace("x")).await;
    (world, server)
}

#[tokio::test]
async fn what_other_servers_keep_in_a_namespace_goes_with_it() {
    let (world, server) = beside(true, Some("example.io/hold")).await;
    world.delete(X, None).await;
    let is_told = |found: Option<&Value>| {
        let told = condition(found.expect("held"), "NamespaceContentRemaining");
        told == Some((
            "True",
            "Some resources are remaining: flunders.wardle.example.com has 2 resource instances",
        ))
    };
    world.until(X, is_told).await;
    let finalizers =
        condition(&world.get(X).await, "NamespaceFinalizersRemaining").map(|(is, _)| is == "True");
    assert_eq!(finalizers, Some(true));
    server.state().finalizer = None;
    world.until_gone(X).await;
    let account = "system:serviceaccount:kube-system:namespace-controller";
    assert!(server.state().in_x == 0 && server.state().deleted_by.iter().all(|name| name == account));
}

#[tokio::test]
async fn a_namespace_waits_for_servers_that_are_not_there_and_says_so() {
    let (world, server) = beside(false, None).await;
    world.create("@v1/configmaps/x", map("m")).await;
    world.delete(X, None).await;
    let failed = |found: &Value| {
        let (is, why) = condition(found, "NamespaceDeletionDiscoveryFailure")?;
        (is == "True").then(|| why.to_owned())
    };
    world.until(X, |found| failed(found.expect("held")).is_some()).await;
    world.until_gone("@v1/configmaps/x/m").await;
    assert_eq!(
        failed(&world.get(X).await).as_deref(),
        Some(
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: \
             wardle.example.com/v1: stale GroupVersion discovery: wardle.example.com/v1"
        )
    );
    server.state().is_there = true;
    world.until_gone(X).await;
    assert_eq!(server.state().in_x, 0);
}
