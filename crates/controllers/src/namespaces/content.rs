//! What is in a namespace, resource by resource: deleted as far as it lets itself be, and counted.
//!
//! Pods go first, and nothing else is touched while there are any: they may still use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::options::{DeleteOptions, PropagationPolicy};
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::Served;
use forebay_catalog::Target;
use serde_json::Value;

use crate::acting::ActingRegistry;
use crate::each::each;
use crate::limits;
use crate::meta::Meta;
use crate::objects::{collection, delete as delete_object, named};

/// What is left of a namespace's content after a round of deletes.
#[derive(Debug, Default)]
pub struct Content {
    /// Resource, as conditions name it -> objects of it that are left.
    pub remaining: BTreeMap<String, usize>,
    /// Finalizer -> objects that it holds.
    pub finalizers: BTreeMap<String, usize>,
    /// What went wrong, resource by resource.
    pub failures: Vec<String>,
    /// Pods are on their way out: what else there is was not looked at.
    pub waits_for_pods: bool,
}

impl Content {
    pub fn is_left(&self) -> bool {
        !self.remaining.is_empty()
    }
}

/// Deletes everything in `namespace` once, and tells what is left.
pub async fn delete(registry: &ActingRegistry, namespace: &str) -> Content {
    let mut content = Content::default();
    let resources = deletable(registry);
    let (pods, others): (Vec<_>, Vec<_>) = resources.into_iter().partition(|served| served.is("", "pods"));
    for served in pods {
        content.take(&served, namespace, delete_all(registry, &served, namespace).await, registry);
    }
    if content.is_left() {
        content.waits_for_pods = true;
        return content;
    }
    for served in others {
        content.take(&served, namespace, delete_all(registry, &served, namespace).await, registry);
    }
    content
}

/// The namespaced resources whose objects can be deleted, each in the version that it is stored in, or in
/// another one if that is not served.
fn deletable(registry: &ActingRegistry) -> Vec<Arc<Served>> {
    let catalog = registry.catalog();
    let wanted = |served: &&Arc<Served>| {
        served.namespaced && served.store.is_some() && served.verbs.contains(&"delete")
    };
    let mut found: Vec<Arc<Served>> = Vec::new();
    for served in catalog.iter().filter(wanted) {
        // Versions of one resource are one store.
        let is_known = |other: &&mut Arc<Served>| match (&other.store, &served.store) {
            (Some(other), Some(store)) => Arc::ptr_eq(other, store),
            _ => false,
        };
        match found.iter_mut().find(is_known) {
            Some(known) if served.is_storage_version() => *known = served.clone(),
            Some(_) => {}
            None => found.push(served.clone()),
        }
    }
    found
}

/// What is left of one resource.
#[derive(Default)]
struct Left {
    count: usize,
    finalizers: BTreeMap<String, usize>,
    /// The latest end of grace that somebody still has, in Unix milliseconds.
    grace_until_ms: Option<i64>,
    failure: Option<String>,
}

/// Deletes every object of `served` in `namespace`, then looks at what is left.
async fn delete_all(
    registry: &ActingRegistry,
    served: &Arc<Served>,
    namespace: &str,
) -> Result<Left, Status> {
    let all = collection(served, Some(namespace));
    // The namespace goes as a whole: nobody is to be orphaned or waited for.
    let options =
        DeleteOptions { propagation_policy: Some(PropagationPolicy::Background), ..DeleteOptions::default() };
    let open = open_in(registry, &all).await?;
    let outcomes = each(open, limits::WRITES_MAX, |name| {
        let (registry, options) = (registry.clone(), options.clone());
        let target = named(served, namespace, &name);
        async move { delete_object(&registry, &target, &options).await }
    })
    .await;
    let mut left = Left::default();
    for outcome in outcomes {
        match outcome {
            // Changed meanwhile: it is there on the next round.
            Err(status) if status.reason == Reason::Conflict => {}
            Err(status) => left.failure = Some(status.message),
            Ok(()) => {}
        }
    }
    let objects = registry.objects(&all).await?;
    if let Err(status) = objects.are_all() {
        // Nobody knows what the others are, or whether they may go: whoever does deletes them explicitly.
        left.failure = Some(status.message);
    }
    for object in objects.iter() {
        left.count += 1;
        for finalizer in Meta::of(object).finalizers {
            *left.finalizers.entry(finalizer).or_default() += 1;
        }
        if served.is("", "pods") {
            let end = grace_until_ms(&served.to_value(object)?);
            left.grace_until_ms = left.grace_until_ms.max(end);
        }
    }
    Ok(left)
}

/// The names of those that are to be deleted: what a finalizer holds and is on its way needs no second word.
async fn open_in(registry: &ActingRegistry, all: &Target) -> Result<Vec<String>, Status> {
    let mut names = Vec::new();
    for object in registry.objects(all).await?.iter() {
        let meta = Meta::of(object);
        if !meta.is_deleting() || meta.finalizers.is_empty() {
            names.push(object.name().to_string());
        }
    }
    Ok(names)
}

/// When the grace of a pod ends that has not ended itself.
fn grace_until_ms(pod: &Value) -> Option<i64> {
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return None;
    }
    let end: jiff::Timestamp = pod["metadata"]["deletionTimestamp"].as_str()?.parse().ok()?;
    Some(end.as_millisecond())
}

impl Content {
    fn take(
        &mut self,
        served: &Served,
        namespace: &str,
        left: Result<Left, Status>,
        registry: &ActingRegistry,
    ) {
        let left = match left {
            Ok(left) => left,
            // The resource went away with its CRD.
            Err(status)
                if registry
                    .catalog()
                    .resource(served.group(), &served.gvr.version, served.resource())
                    .is_none() =>
            {
                return tracing::debug!(
                    resource = served.resource(),
                    why = status.message,
                    "no longer served"
                );
            }
            Err(status) => return self.failures.push(status.message),
        };
        let now_ms = registry.clock().unix_ms() as i64;
        let expected = !left.finalizers.is_empty() || left.grace_until_ms.is_some_and(|end| end > now_ms);
        match left.failure {
            Some(failure) => self.failures.push(failure),
            None if left.count > 0 && !expected => self.failures.push(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {}/{}, Resource={}",
                served.group(),
                served.gvr.version,
                served.resource()
            )),
            None => {}
        }
        if left.count > 0 {
            self.remaining.insert(format!("{}.{}", served.resource(), served.group()), left.count);
        }
        for (finalizer, count) in left.finalizers {
            *self.finalizers.entry(finalizer).or_default() += count;
        }
    }
}
