//! What is in a namespace, resource by resource: deleted as far as it lets itself be, and counted.
//!
//! Pods go first, and nothing else is touched while there are any: they may still use it. What other servers
//! keep there goes last.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_api::{Elsewhere, ResourceElsewhere};
use forebay_apimachinery::options::{DeleteOptions, PropagationPolicy};
use forebay_apimachinery::{Reason, ResourceAttributes, Status, Verb};
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
    /// Versions that other servers serve of which nobody knows now what they have, in order.
    pub undiscovered: Vec<String>,
    /// Pods are on their way out: what else there is was not looked at.
    pub waits_for_pods: bool,
}

impl Content {
    pub fn is_left(&self) -> bool {
        !self.remaining.is_empty()
    }

    /// What is in the way of letting go, whatever is left.
    pub fn all_failures(&self) -> Vec<String> {
        let undiscovered = self.undiscovered.iter().map(|version| format!("{version} is not there"));
        self.failures.iter().cloned().chain(undiscovered).collect()
    }
}

/// Deletes everything in `namespace` once, and tells what is left.
pub async fn delete(
    registry: &ActingRegistry,
    elsewhere: Option<&dyn Elsewhere>,
    namespace: &str,
) -> Content {
    let mut content = Content::default();
    let served = elsewhere.map(|elsewhere| elsewhere.served()).transpose().unwrap_or_else(|status| {
        content.failures.push(status.message);
        None
    });
    let served = served.unwrap_or_default();
    content.undiscovered = served.unknown;
    let (pods, others): (Vec<_>, Vec<_>) =
        deletable(registry).into_iter().partition(|served| served.is("", "pods"));
    for pods in pods {
        content.take(&pods, namespace, delete_all(registry, &pods, namespace).await, registry);
    }
    if content.is_left() {
        content.waits_for_pods = true;
        return content;
    }
    for other in others {
        content.take(&other, namespace, delete_all(registry, &other, namespace).await, registry);
    }
    for resource in &served.resources {
        let Some(elsewhere) = elsewhere else { break };
        match delete_elsewhere(registry, elsewhere, resource, namespace).await {
            Ok(left) => {
                let of = (&*resource.group, &*resource.version, &*resource.resource);
                content.add(of, namespace, left, registry);
            }
            Err(status) => content.failures.push(status.message),
        }
    }
    content
}

/// The same on another server, which asks once more whether the account may.
async fn delete_elsewhere(
    registry: &ActingRegistry,
    elsewhere: &dyn Elsewhere,
    resource: &ResourceElsewhere,
    namespace: &str,
) -> Result<Left, Status> {
    let of = ResourceAttributes {
        group: &resource.group,
        version: &resource.version,
        resource: &resource.resource,
        namespace,
        ..ResourceAttributes::default()
    };
    let verb = if resource.has_collections { Verb::DeleteCollection } else { Verb::Delete };
    let account = registry.account_that_may(&verb, of).await?;
    let found = elsewhere.delete_all(account, resource, namespace).await?;
    let mut left = Left { count: found.count, ..Left::default() };
    for finalizer in found.finalizers {
        *left.finalizers.entry(finalizer).or_default() += 1;
    }
    Ok(left)
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
        self.add((served.group(), &served.gvr.version, served.resource()), namespace, left, registry);
    }

    fn add(
        &mut self,
        (group, version, resource): (&str, &str, &str),
        namespace: &str,
        left: Left,
        registry: &ActingRegistry,
    ) {
        let now_ms = registry.clock().unix_ms() as i64;
        let expected = !left.finalizers.is_empty() || left.grace_until_ms.is_some_and(|end| end > now_ms);
        match left.failure {
            Some(failure) => self.failures.push(failure),
            None if left.count > 0 && !expected => self.failures.push(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={resource}"
            )),
            None => {}
        }
        if left.count > 0 {
            self.remaining.insert(format!("{resource}.{group}"), left.count);
        }
        for (finalizer, count) in left.finalizers {
            *self.finalizers.entry(finalizer).or_default() += count;
        }
    }
}
