//! Ends namespaces: deletes what is in them, waits until it is gone, and then lets go of them.
//!
//! In: namespaces that are being deleted. Out: deletes in each resource that has objects there, conditions that say what
//! is in the way, and in the end `spec.finalizers` without `kubernetes`. Keeps nothing: each look begins with what is
//! there, so that a restart goes on where it was.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/namespace`.

mod conditions;
mod content;

use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{Reason, Status};
use forebay_registry::request::Target;
use forebay_registry::{Informer, Notice, Registry};
use forebay_rt::Instant;
use serde_json::{Value, json};

use crate::limits;
use crate::objects::{built_in, collection, find, named, update};
use crate::queue::{Queue, Verdict};
use crate::run::Named;
use content::Content;

/// What this controller holds a namespace with, in `spec.finalizers`.
const FINALIZER: &str = "kubernetes";

/// The controller.
pub struct Namespaces {
    registry: Registry,
}

impl Namespaces {
    pub fn new(registry: Registry) -> Namespaces {
        Namespaces { registry }
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
            queue.add_at(namespace.name().to_string(), now + limits::NAMESPACE_GRACE);
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
async fn sync(registry: &Registry, name: &str) -> Result<Verdict, Status> {
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
    registry: &Registry,
    target: &Target,
    mut namespace: Value,
    content: &Content,
) -> Result<Value, Status> {
    let now = registry.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
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
async fn finalize(registry: &Registry, target: &Target, mut namespace: Value) -> Result<Verdict, Status> {
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
