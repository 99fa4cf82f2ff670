//! Ends namespaces: deletes what is in them, waits until it is gone, and then lets go of them.
//!
//! In: namespaces that are being deleted. Out: deletes in each resource that has objects there, conditions
//! that say what is in the way, and in the end `spec.finalizers` without `kubernetes`. Keeps nothing: each
//! look begins with what is there, so that a restart goes on where it was.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/namespace`.

mod conditions;
mod content;

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
}

impl Namespaces {
    pub fn new(registry: ActingRegistry) -> Namespaces {
        Namespaces { registry }
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
        let registry = self.registry.clone();
        async move {
            match sync(&registry, &name).await {
                Ok(verdict) => verdict,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

/// One look at a namespace.
async fn sync(registry: &ActingRegistry, name: &str) -> Result<Verdict, Status> {
    let served = built_in(registry, "", "v1", "namespaces")?;
    let target = named(&served, "", name);
    let Some(found) = find(registry, &target).await? else { return Ok(Verdict::Done) };
    let namespace = served.to_value(&found)?;
    let finalizers = namespace["spec"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !namespace["metadata"]["deletionTimestamp"].is_string() || finalizers.is_empty() {
        return Ok(Verdict::Done);
    }
    let content = content::delete(registry, name).await;
    let namespace = tell(registry, &target, namespace, &content).await?;
    if !content.failures.is_empty() {
        return Ok(Verdict::Retry(content.failures.join("; ")));
    }
    if content.is_left() {
        return Ok(Verdict::Wait);
    }
    finalize(registry, &target, namespace).await
}

/// Writes what was found into the namespace's conditions; the namespace as it is then.
async fn tell(
    registry: &ActingRegistry,
    target: &Target,
    mut namespace: Value,
    content: &Content,
) -> Result<Value, Status> {
    let now = registry.now_rfc3339();
    let changed = conditions::update(&mut namespace["status"], content, &now);
    if namespace["status"]["phase"] == "Terminating" && !changed {
        return Ok(namespace);
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
    found.map_or(Ok(Value::Null), |found| target.served.to_value(&found))
}

/// Takes our hold off the namespace, which ends it unless somebody else has one.
async fn finalize(
    registry: &ActingRegistry,
    target: &Target,
    mut namespace: Value,
) -> Result<Verdict, Status> {
    if namespace.is_null() {
        return Ok(Verdict::Done);
    }
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
    use forebay_api::Body;
    use forebay_apimachinery::options::{CreateOptions, DeleteOptions};
    use forebay_embedded::{Engine, Options};
    use forebay_registry::{Config, History, Registry};
    use forebay_rt::{Clock, Random, Tasks};

    use super::*;

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
            let controller = Namespaces::new(ActingRegistry::of_tests(registry.clone()));
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
