//! Ends namespaces: deletes what is in them, waits until it is gone, and then lets go of them.
//!
//! In: namespaces that are being deleted. Out: deletes in each resource that has objects there, conditions
//! that say what is in the way, and in the end `spec.finalizers` without `kubernetes`. Keeps nothing: each
//! look begins with what is there, so that a restart goes on where it was.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/namespace`.

mod conditions;
mod content;

use std::sync::Arc;

use forebay_api::Elsewhere;
use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::Target;
use forebay_registry::{Informer, Notice};
use forebay_rt::{Duration, Instant};
use serde_json::{Value, json};

use crate::acting::ActingRegistry;
use crate::limits;
use crate::objects::{built_in, collection, find, named, update};
use crate::queue::{Queue, Verdict};
use crate::run::Named;
use content::Content;

/// What this controller holds a namespace with, in `spec.finalizers`.
const FINALIZER: &str = "kubernetes";

/// The controller.
pub struct Namespaces {
    registry: ActingRegistry,
    elsewhere: Option<Arc<dyn Elsewhere>>,
}

impl Namespaces {
    /// - `elsewhere`: the other servers, if there may be any.
    pub fn new(registry: ActingRegistry, elsewhere: Option<Arc<dyn Elsewhere>>) -> Namespaces {
        Namespaces { registry, elsewhere }
    }

    fn grace(&self) -> Duration {
        match self.registry.is_alone() {
            true => limits::NAMESPACE_GRACE,
            false => limits::NAMESPACE_GRACE_SHARED,
        }
    }
}

impl Named for Namespaces {
    const NAME: &'static str = crate::Controller::Namespace.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        let namespaces = built_in(&self.registry, "", "v1", "namespaces")?;
        let all = collection(&namespaces, None);
        Ok(vec![self.registry.informer(&all, &ListOptions::default())?])
    }

    fn observe(&self, _source: usize, notice: &Notice, now: Instant, queue: &mut Queue<String>) {
        if let Notice::Put(namespace) = notice
            && crate::meta::Meta::of(namespace).is_deleting()
        {
            queue.add_at(namespace.name().to_string(), now + self.grace());
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let (registry, elsewhere) = (self.registry.clone(), self.elsewhere.clone());
        async move {
            match sync(&registry, elsewhere.as_deref(), &name).await {
                Ok(verdict) => verdict,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

/// One look at a namespace.
async fn sync(
    registry: &ActingRegistry,
    elsewhere: Option<&dyn Elsewhere>,
    name: &str,
) -> Result<Verdict, Status> {
    let served = built_in(registry, "", "v1", "namespaces")?;
    let target = named(&served, "", name);
    let Some(found) = find(registry, &target).await? else { return Ok(Verdict::Done) };
    let namespace = served.to_value(&found)?;
    let finalizers = namespace["spec"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !namespace["metadata"]["deletionTimestamp"].is_string() || finalizers.is_empty() {
        return Ok(Verdict::Done);
    }
    // Nothing more is created in it than what is on its way to the store.
    tokio::select! {
        () = registry.creates_ended() => {}
        () = registry.clock().sleep(limits::CREATES_WAIT) => {
            return Ok(Verdict::Retry("objects are on their way to the store".into()));
        }
    }
    let (uid, mut namespace) = (namespace["metadata"]["uid"].clone(), namespace);
    for _ in 0..limits::CONFLICTS_MAX {
        let content = content::delete(registry, elsewhere, name).await;
        let (now, told) = tell(registry, &target, namespace, &content).await?;
        if now["metadata"]["uid"] != uid {
            // It is gone, whoever let go of it.
            return Ok(Verdict::Done);
        }
        namespace = now;
        let failures = content.all_failures();
        if !failures.is_empty() {
            return Ok(Verdict::Retry(failures.join("; ")));
        }
        if content.is_left() {
            return Ok(Verdict::Wait);
        }
        // What a client gave up on may have been on its way all the same, but not behind what is told here:
        // the look that lets go comes after that.
        if told == Told::Before {
            return finalize(registry, &target, namespace).await;
        }
    }
    Ok(Verdict::Wait)
}

/// Whether the namespace said already what was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Now,
    Before,
}

/// Writes what was found into the namespace's conditions; the namespace as it is then, null where it is gone.
async fn tell(
    registry: &ActingRegistry,
    target: &Target,
    mut namespace: Value,
    content: &Content,
) -> Result<(Value, Told), Status> {
    let now = registry.now_rfc3339();
    let changed = conditions::update(&mut namespace["status"], content, &now);
    if namespace["status"]["phase"] == "Terminating" && !changed {
        return Ok((namespace, Told::Before));
    }
    namespace["status"]["phase"] = json!("Terminating");
    let status = Target { subresource: Some("status".into()), ..target.clone() };
    match update(registry, &status, namespace.clone()).await {
        Ok(()) => {}
        // Somebody else has written it: what is left to do is found on the next look.
        Err(status) if matches!(status.reason, Reason::NotFound | Reason::Conflict) => {}
        Err(status) => return Err(status),
    }
    let found = find(registry, target).await?;
    let found = found.map_or(Ok(Value::Null), |found| target.served.to_value(&found))?;
    Ok((found, Told::Now))
}

/// Takes our hold off the namespace, which ends it unless somebody else has one.
async fn finalize(
    registry: &ActingRegistry,
    target: &Target,
    mut namespace: Value,
) -> Result<Verdict, Status> {
    if let Some(finalizers) = namespace["spec"]["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    let finalize = Target { subresource: Some("finalize".into()), ..target.clone() };
    match update(registry, &finalize, namespace).await {
        Err(status) if status.reason == Reason::NotFound => Ok(Verdict::Done),
        done => done.map(|()| Verdict::Done),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    use forebay_api::{Answer, Body};
    use forebay_apimachinery::options::{CreateOptions, DeleteOptions};
    use forebay_backend::{Backend, BoxFuture, Layer, Op, Txn, TxnError, TxnResponse};
    use forebay_embedded::{Engine, Options};
    use forebay_registry::{Config, History, Registry};
    use forebay_rt::{Clock, Random, Tasks};
    use tokio::sync::Notify;

    use super::*;

    /// What is created as `late` does not get into the store before it is let in.
    struct Slow {
        below: Arc<Engine>,
        late: Mutex<Option<Txn>>,
        arrived: Notify,
        let_in: Notify,
        // It goes in before what is written to a namespace next, as what waits in a queue does whose client
        // is gone.
        is_queued: AtomicBool,
    }

    impl Slow {
        fn take_late(&self) -> Option<Txn> {
            self.late.lock().unwrap_or_else(PoisonError::into_inner).take()
        }
    }

    impl Layer for Slow {
        fn below(&self) -> Arc<dyn Backend> {
            self.below.clone()
        }

        fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
            Box::pin(async move {
                if txn.key.as_str().ends_with("/late") && matches!(txn.op, Op::Put { .. }) {
                    *self.late.lock().unwrap_or_else(PoisonError::into_inner) = Some(txn);
                    self.arrived.notify_one();
                    self.let_in.notified().await;
                    let Some(late) = self.take_late() else { return Err(TxnError::Closed) };
                    return self.below.commit(late).await;
                }
                if self.is_queued.load(Ordering::Acquire)
                    && txn.key.as_str().contains("/namespaces/")
                    && let Some(late) = self.take_late()
                {
                    self.below.commit(late).await?;
                }
                self.below.commit(txn).await
            })
        }
    }

    /// A namespace `x`, on such a store.
    async fn with_slow_store() -> (Arc<Slow>, ActingRegistry) {
        let clock = Clock::system();
        let below = Engine::open_in_memory(Options::default()).expect("opens");
        let (late, arrived, let_in) = (Mutex::default(), Notify::new(), Notify::new());
        let slow = Arc::new(Slow { below, late, arrived, let_in, is_queued: AtomicBool::new(false) });
        let registry = Registry::new(Config::default(), slow.clone(), clock, Random::seeded(1), Tasks::new());
        registry.start().await.expect("starts");
        let registry = ActingRegistry::of_tests(registry);
        create(&registry, "namespaces", "x").await.expect("created");
        (slow, registry)
    }

    /// Creates `name`, in the namespace `x` if it is to be in one.
    async fn create(registry: &ActingRegistry, resource: &str, name: &str) -> Result<Answer, Status> {
        let served = built_in(registry, "", "v1", resource).expect("served");
        let body = Body::Value(json!({ "metadata": { "name": name } }));
        registry.create(&collection(&served, Some("x")), &body, &CreateOptions::default()).await
    }

    async fn is_there(registry: &ActingRegistry, resource: &str, name: &str) -> bool {
        let served = built_in(registry, "", "v1", resource).expect("served");
        find(registry, &named(&served, "x", name)).await.expect("read").is_some()
    }

    async fn end_namespace(registry: &ActingRegistry) {
        let target = named(&built_in(registry, "", "v1", "namespaces").expect("served"), "", "x");
        registry.delete(&target, &DeleteOptions::default()).await.expect("deleted");
    }

    #[tokio::test]
    async fn a_namespace_waits_for_what_is_on_its_way_to_the_store_and_takes_it_along() {
        let (slow, registry) = with_slow_store().await;
        let end = async {
            slow.arrived.notified().await;
            end_namespace(&registry).await;
            let waits = sync(&registry, None, "x").await.expect("looked");
            assert_eq!(waits, Verdict::Retry("objects are on their way to the store".into()));
            assert!(is_there(&registry, "namespaces", "x").await, "it waits");
            slow.let_in.notify_one();
        };
        let (created, ()) = tokio::join!(create(&registry, "configmaps", "late"), end);
        created.expect("was admitted before");
        assert_eq!(sync(&registry, None, "x").await, Ok(Verdict::Done));
        assert!(!is_there(&registry, "configmaps", "late").await);
        assert!(!is_there(&registry, "namespaces", "x").await);
    }

    #[tokio::test]
    async fn what_a_client_gave_up_on_goes_with_its_namespace_all_the_same() {
        let (slow, registry) = with_slow_store().await;
        {
            let mut given_up = pin!(create(&registry, "configmaps", "late"));
            tokio::select! {
                biased;
                _ = &mut given_up => panic!("the store does not answer"),
                () = slow.arrived.notified() => {}
            }
        }
        end_namespace(&registry).await;
        slow.is_queued.store(true, Ordering::Release);
        assert_eq!(sync(&registry, None, "x").await, Ok(Verdict::Done));
        assert!(slow.take_late().is_none(), "it was stored");
        assert!(!is_there(&registry, "configmaps", "late").await);
        assert!(!is_there(&registry, "namespaces", "x").await);
    }

    #[tokio::test]
    async fn other_servers_are_given_time_to_hear_of_a_deletion() {
        let shared = History::Shared { check_every: Duration::from_secs(3_600) };
        for (history, grace) in
            [(History::Own, limits::NAMESPACE_GRACE), (shared, limits::NAMESPACE_GRACE_SHARED)]
        {
            let clock = Clock::system();
            let engine = Engine::open_in_memory(Options::default()).expect("opens");
            let config = Config { history, ..Config::default() };
            let registry = Registry::new(config, engine, clock.clone(), Random::seeded(1), Tasks::new());
            registry.start().await.expect("starts");
            let target = named(&built_in(&registry, "", "v1", "namespaces").expect("served"), "", "x");
            let body = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}"#;
            let all = Target { name: None, ..target.clone() };
            let body = Body::Json(body.into());
            registry.create(&all, &body, &CreateOptions::default()).await.expect("created");
            let controller = Namespaces::new(ActingRegistry::of_tests(registry.clone()), None);
            let (mut queue, now) = (Queue::new(), clock.now());
            let living = find(&registry, &target).await.expect("read").expect("there");
            controller.observe(0, &Notice::Put(living), now, &mut queue);
            assert_eq!(queue.next_due(), None);
            registry.delete(&target, &DeleteOptions::default()).await.expect("deleted");
            let ending = find(&registry, &target).await.expect("read").expect("held");
            controller.observe(0, &Notice::Put(ending), now, &mut queue);
            assert_eq!(queue.next_due(), Some(now + grace));
        }
    }
}
