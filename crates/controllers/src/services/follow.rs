//! What both controllers do: they hear of services and pods, and look at a service with the pods that it
//! selects.
//!
//! In: notices. Out: names of services, `namespace/name`, into a queue; a service and its pods as they are
//! now.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_object::Object;
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;

use super::index::{ServiceIndex, selects};
use super::triggers::LastSeen;
use super::view::{Seconds, SelectedPod, Service};
use crate::acting::ActingRegistry;
use crate::limits;
use crate::objects::{built_in, collection, find, named};
use crate::queue::Queue;

/// See the module's doc.
pub struct Follow {
    pub registry: ActingRegistry,
    index: Mutex<ServiceIndex>,
    // namespace/name -> what was seen of it
    seen: Mutex<HashMap<String, LastSeen>>,
}

/// What there is of a service.
pub enum Looked {
    Gone,
    /// It selects no pods.
    Unselective,
    Selected(Box<Selected>),
}

/// A service and the pods that it selects, in the order of their names.
pub struct Selected {
    pub service: Service,
    pub pods: Vec<SelectedPod>,
    /// What has changed since the last look that was kept.
    pub trigger: Option<Seconds>,
    pub seen: LastSeen,
}

impl Follow {
    pub fn new(registry: ActingRegistry) -> Follow {
        Follow { registry, index: Mutex::default(), seen: Mutex::default() }
    }

    /// Informers on services, on pods, and on what the controller writes.
    pub fn informers(&self, (group, resource): (&str, &str)) -> Result<Vec<Informer>, Status> {
        let all = [("", "services"), ("", "pods"), (group, resource)];
        let informer = |(group, resource): (&str, &str)| {
            let served = built_in(&self.registry, group, "v1", resource)?;
            self.registry.informer(&collection(&served, None), &ListOptions::default())
        };
        all.into_iter().map(informer).collect()
    }

    /// A service, and what it selects by, is told of.
    pub fn observe_service(&self, notice: &Notice, queue: &mut Queue<String>) {
        let (Notice::Put(service) | Notice::Deleted(service)) = notice else { return };
        let (namespace, name) = (service.namespace(), service.name());
        let mut index = locked(&self.index);
        match notice {
            Notice::Put(_) => index.put(namespace, name, Service::of(service)),
            _ => index.remove(namespace, name),
        }
        queue.add(key(namespace, name));
    }

    /// A pod is told of. Only what some service selects is read, and only what it leads to is compared: all
    /// that changes meanwhile is looked at once.
    pub fn observe_pod(
        &self,
        notice: &Notice,
        previous: Option<&Object>,
        now: Instant,
        queue: &mut Queue<String>,
    ) {
        let (Notice::Put(pod) | Notice::Deleted(pod)) = notice else { return };
        let index = locked(&self.index);
        let (mut services, before) = (index.of(pod).peekable(), previous.map(|previous| index.of(previous)));
        let mut before = before.into_iter().flatten().peekable();
        if services.peek().is_none() && before.peek().is_none() {
            return;
        }
        let is_same = previous.is_some_and(|previous| {
            previous.labels().eq(pod.labels())
                && SelectedPod::of(previous).leads_the_same(&SelectedPod::of(pod))
        });
        if !is_same {
            for name in services.chain(before) {
                queue.add_at(key(pod.namespace(), name), now + limits::ENDPOINTS_PAUSE);
            }
        }
    }

    /// A service and its pods, with every commit that was acknowledged before the call.
    ///
    /// # Errors
    /// The read failed, or there may be pods that cannot be read.
    pub async fn look(&self, name: &str) -> Result<Looked, Status> {
        let (namespace, service) = split(name);
        let services = built_in(&self.registry, "", "v1", "services")?;
        let Some(found) = find(&self.registry, &named(&services, namespace, service)).await? else {
            locked(&self.seen).remove(name);
            return Ok(Looked::Gone);
        };
        let service = Service::of(&found);
        if !service.selects() {
            return Ok(Looked::Unselective);
        }
        let pods = built_in(&self.registry, "", "v1", "pods")?;
        let objects = self.registry.objects(&collection(&pods, Some(namespace))).await?;
        objects.are_all()?;
        let mut pods = Vec::new();
        for (at, pod) in objects.iter().enumerate() {
            if at % limits::PODS_LOOKED_AT_MAX == limits::PODS_LOOKED_AT_MAX - 1 {
                tokio::task::yield_now().await;
            }
            if selects(&service.spec.selector, pod) {
                pods.push(SelectedPod::of(pod));
            }
        }
        let seen = LastSeen::of(&service, &pods);
        let trigger = seen.trigger(locked(&self.seen).get(name));
        Ok(Looked::Selected(Box::new(Selected { service, pods, trigger, seen })))
    }

    /// Keeps what was seen of a service, once it is acted on.
    pub fn keep(&self, name: String, seen: LastSeen) {
        locked(&self.seen).insert(name, seen);
    }
}

pub fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The namespace and the name of a key.
pub fn split(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or_default()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
