//! Many writers, several servers, stores that stop, clients that go: no item is had twice, none is lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::{Reason, Status};
use forebay_backend::{Backend, BoxFuture, Layer, Txn, TxnError, TxnResponse};
use forebay_embedded::Engine;
use forebay_registry::ServicesConfig;
use forebay_rt::Duration;
use serde_json::json;

use crate::world::{SERVICES, Stopping, World, config, create_at_once, distinct, engine, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_get_every_address_once_and_the_rest_is_told_that_the_range_is_full() {
    let world = World::new("10.0.0.0/27", "30000-30099").await;
    for round in 0..2 {
        let (made, refused) = create_at_once(std::slice::from_ref(&world), 50, &json!({})).await;
        assert_eq!((made.len(), distinct(&made, "/spec/clusterIP")), (30, 30), "round {round}");
        for status in refused {
            assert_eq!(status.reason, Reason::InternalError);
            let message = &status.message;
            assert!(
                message
                    .starts_with("Internal error occurred: failed to allocate a serviceIP for Service \"s-")
                    && message.ends_with("\": range is full"),
                "{message}"
            );
        }
        world.is_consistent("after a full round").await;
        for service in made {
            world
                .delete(&format!("{SERVICES}/{}", text(&service["metadata"]["name"])))
                .await
                .expect("deletes");
        }
        assert_eq!(world.claims().await, BTreeMap::new(), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_on_one_store_give_nothing_twice() {
    let engine = engine();
    let services =
        ServicesConfig { leak_grace: Duration::from_secs(60), ..config("10.0.0.0/27", "30000-30019") };
    let one = World::on(engine.clone(), services.clone()).await;
    let other = World::on(engine, services).await;
    let (made, refused) = create_at_once(&[one.clone(), other], 40, &json!({ "type": "NodePort" })).await;
    assert_eq!((made.len(), distinct(&made, "/spec/clusterIP")), (20, 20));
    assert_eq!(distinct(&made, "/spec/ports/0/nodePort"), 20);
    for status in refused {
        let full = "Internal error occurred: failed to allocate a nodePort: range is full";
        let addresses = status.message.ends_with("\": range is full");
        assert!(status.message == full || addresses, "{}", status.message);
    }
    one.is_consistent("what was refused holds nothing").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_gets_the_address_and_port_that_all_ask_for() {
    let world = World::new("10.0.0.0/24", "30000-30099").await;
    let spec = json!({ "type": "NodePort", "clusterIP": "10.0.0.9" });
    let (made, refused) = create_at_once(std::slice::from_ref(&world), 20, &spec).await;
    assert_eq!(made.len(), 1);
    for status in refused {
        assert_eq!(status.reason, Reason::Invalid);
        assert_eq!(status.causes[0].field, "spec.clusterIPs");
        let why = r#"Invalid value: ["10.0.0.9"]: failed to allocate IP 10.0.0.9: provided IP is already allocated"#;
        assert_eq!(status.causes[0].message, why);
    }
    let spec = json!({ "type": "NodePort", "ports": [{ "port": 1, "nodePort": 30_007 }] });
    let names: Vec<String> = (0..10).map(|number| format!("p-{number}")).collect();
    let mut told = Vec::new();
    for created in futures(names.iter().map(|name| world.service(name, spec.clone()))).await {
        told.extend(created.err().map(|status| status.causes[0].message.clone()));
    }
    assert_eq!(told, ["Invalid value: 30007: provided port is already allocated"; 9]);
    world.is_consistent("the others hold nothing").await;
}

/// All of `all`, polled together.
async fn futures<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        for (one, done) in all.iter_mut().filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(value) = one.as_mut().poll(context) {
                *done = Some(value);
            }
        }
        if all.iter().all(|(_, done)| done.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    all.into_iter().filter_map(|(_, done)| done).collect()
}

/// One Service's life, with every way to take and give back. Ends at the first failure.
async fn live(world: &World) -> Result<(), Status> {
    world.service("a", json!({ "type": "NodePort" })).await?;
    world.service("b", json!({ "ipFamilyPolicy": "PreferDualStack" })).await?;
    world.patch("a", json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Local" })).await?;
    world.patch("b", json!({ "ipFamilyPolicy": "SingleStack" })).await?;
    world.patch("b", json!({ "ipFamilyPolicy": "RequireDualStack" })).await?;
    world.patch("a", json!({ "type": "ClusterIP" })).await?;
    world.patch("a", json!({ "type": "ExternalName", "externalName": "x.y" })).await?;
    world.patch("a", json!({ "type": "NodePort", "externalName": null })).await?;
    world.service("c", json!({ "clusterIP": "None" })).await?;
    // Taken already: what it claimed on the way is given back.
    match world.service("a", json!({ "type": "NodePort" })).await {
        Err(status) if status.reason == Reason::AlreadyExists => {}
        other => return other.map(drop),
    }
    world.delete(&format!("{SERVICES}/b")).await?;
    world.delete(&format!("{SERVICES}/a")).await?;
    world.delete(&format!("{SERVICES}/c")).await?;
    Ok(())
}

#[tokio::test]
async fn whatever_the_commit_at_which_it_stops_nothing_is_lost_and_nothing_is_double_after_a_restart() {
    let services = config("10.0.0.0/28,fd00::/120", "30000-30009");
    let mut ended = false;
    for commits in 0.. {
        let engine = World::on(engine(), services.clone()).await.stop().await;
        let backend = Arc::new(Stopping { engine: engine.clone(), left: AtomicUsize::new(usize::MAX) });
        let world = World::beside(engine, backend.clone(), services.clone());
        world.registry.start().await.expect("starts");
        backend.left.store(commits, Ordering::SeqCst);
        ended = live(&world).await.is_ok() && backend.left.load(Ordering::SeqCst) > 0;
        let world = World::on(world.stop().await, services.clone()).await;
        world.becomes_consistent().await;
        // Nothing that is free is taken for taken: the rest of the range can be had.
        let taken = world.claims().await.keys().filter(|item| item.starts_with("10.")).count();
        let (made, _) = create_at_once(std::slice::from_ref(&world), 20, &json!({})).await;
        assert_eq!(made.len(), 14 - taken, "after {commits} commits");
        world.is_consistent(&format!("after {commits} commits")).await;
        world.stop().await;
        if ended {
            break;
        }
    }
    assert!(ended);
}

#[tokio::test]
async fn a_write_that_nobody_waits_for_ends_all_the_same() {
    let world = World::new("10.0.0.0/24", "30000-30099").await;
    for polls in 1..12 {
        let spec = json!({ "type": "NodePort" });
        let name = format!("s-{polls}");
        let mut creating = Box::pin(world.service(&name, spec));
        for _ in 0..polls {
            let once =
                std::future::poll_fn(|context| std::task::Poll::Ready(creating.as_mut().poll(context)));
            if once.await.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(creating);
    }
    world.becomes_consistent().await;
}

/// What becomes of a write of a Service, and whether anybody is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    WrittenUnanswered,
    /// Nobody is told, and it may be written later.
    Underway,
}

/// A store whose writes of Services have a [`Fate`].
struct Unanswering {
    engine: Arc<Engine>,
    fate: Mutex<Fate>,
    // What may be written later.
    underway: Mutex<Vec<Txn>>,
}

impl Unanswering {
    fn set(&self, fate: Fate) {
        *self.fate.lock().unwrap_or_else(PoisonError::into_inner) = fate;
    }

    fn fate_of(&self, txn: &Txn) -> Fate {
        let is_service = txn.key.as_str().starts_with("/registry/services/specs/");
        if is_service { *self.fate.lock().unwrap_or_else(PoisonError::into_inner) } else { Fate::Answered }
    }

    /// What was underway arrives.
    async fn arrive(&self) {
        let underway = std::mem::take(&mut *self.underway.lock().unwrap_or_else(PoisonError::into_inner));
        for txn in underway {
            let done = self.engine.commit(txn).await;
            assert!(matches!(done, Ok(TxnResponse::Committed(_))), "{done:?}");
        }
    }
}

impl Layer for Unanswering {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine.clone()
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        match self.fate_of(&txn) {
            Fate::Answered => self.engine.commit(txn),
            Fate::WrittenUnanswered => Box::pin(async move {
                self.engine.commit(txn).await?;
                Err(unanswered())
            }),
            Fate::Underway => {
                self.underway.lock().unwrap_or_else(PoisonError::into_inner).push(txn);
                Box::pin(async move { Err(unanswered()) })
            }
        }
    }
}

fn unanswered() -> TxnError {
    TxnError::Unanswered { cause: "the connection was lost".to_string() }
}

/// A server on a store that may not answer.
async fn unanswering() -> (World, Arc<Unanswering>) {
    let engine = engine();
    let store = Arc::new(Unanswering {
        engine: engine.clone(),
        fate: Mutex::new(Fate::Answered),
        underway: Mutex::default(),
    });
    let world = World::beside(engine, store.clone(), config("10.0.0.0/24", "30000-30009"));
    world.registry.start().await.expect("starts");
    (world, store)
}

#[tokio::test]
async fn what_a_write_without_an_answer_claimed_is_nobody_elses_until_the_next_repair() {
    let spec =
        json!({ "type": "NodePort", "clusterIP": "10.0.0.9", "ports": [{ "port": 1, "nodePort": 30_009 }] });
    let port = json!({ "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30_005 }] });
    for fate in [Fate::WrittenUnanswered, Fate::Underway] {
        let (world, store) = unanswering().await;
        world.service("known", json!({ "clusterIP": "10.0.0.8" })).await.expect("creates");
        store.set(fate);
        let unknown = world.service("a", spec.clone()).await.expect_err("no answer");
        assert_eq!(unknown.reason, Reason::Timeout);
        let unknown = world.patch("known", port.clone()).await.expect_err("no answer");
        assert_eq!(unknown.reason, Reason::Timeout);
        store.set(Fate::Answered);
        for taken in [&spec, &port] {
            let refused = world.service("b", taken.clone()).await.expect_err("it may be taken");
            assert_eq!(refused.reason, Reason::Invalid, "{}", refused.message);
        }
        store.arrive().await;
        world.is_consistent("each has what it claimed").await;
        // What is known to be refused leaves nothing.
        let refused = world.service("a", json!({ "type": "NodePort" })).await.expect_err("the name is taken");
        assert_eq!(refused.reason, Reason::AlreadyExists);
        world.is_consistent("it was given back").await;
    }
}

#[tokio::test]
async fn what_was_claimed_for_a_write_that_never_came_is_given_back_by_the_repair() {
    let (world, store) = unanswering().await;
    store.set(Fate::Underway);
    world.service("a", json!({ "type": "NodePort" })).await.expect_err("no answer");
    assert_eq!(world.claims().await.len(), 2, "they stay");
    let world = World::on(world.stop().await, config("10.0.0.0/24", "30000-30009")).await;
    assert_eq!(world.claims().await, BTreeMap::new());
}
