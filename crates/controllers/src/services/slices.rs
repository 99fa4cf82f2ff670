//! endpointslice-controller: the EndpointSlices of each service that selects pods.
//!
//! In: services, pods, slices and nodes. Out: slices, created, replaced and deleted; events. Never: keeps a
//! slice.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/endpointslice`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_apimachinery::options::{DeleteOptions, ListOptions, Preconditions};
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::Served;
use forebay_object::Object;
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use serde_json::{Map, Value, json};

use super::events::{ServiceEvent, say};
use super::follow::{Follow, Looked, Selected, key};
use super::hints::Closeness;
use super::near::NearServices;
use super::ports::PortLists;
use super::reconcile::{MANAGED_BY, SERVICE_NAME, SlicePlan, WantedSlices, reconcile};
use super::topology::ZONE;
use super::triggers::written;
use super::view::{AddressFamily, SelectedPod, Service};
use crate::acting::ActingRegistry;
use crate::limits;
use crate::objects::{built_in, collection, create, delete, find, named, update};
use crate::queue::{Queue, Verdict};
use crate::run::Named;
use crate::service_accounts::is_about_the_namespace;

const SLICES: (&str, &str) = ("discovery.k8s.io", "endpointslices");
const FAILED: &str = "FailedToUpdateEndpointSlices";

/// The controller.
pub struct SliceController {
    follow: Arc<Follow>,
    near: Arc<NearServices>,
}

impl SliceController {
    pub fn new(registry: ActingRegistry) -> SliceController {
        SliceController { follow: Arc::new(Follow::new(registry)), near: Arc::default() }
    }
}

impl Named for SliceController {
    const NAME: &'static str = crate::Controller::EndpointSlice.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        let mut informers = self.follow.informers(SLICES)?;
        let nodes = collection(&built_in(&self.follow.registry, "", "v1", "nodes")?, None);
        informers.push(self.follow.registry.informer(&nodes, &ListOptions::default())?);
        Ok(informers)
    }

    fn observe(&self, source: usize, notice: &Notice, now: Instant, queue: &mut Queue<String>) {
        self.observe_change(source, notice, None, now, queue);
    }

    fn observe_change(
        &self,
        source: usize,
        notice: &Notice,
        previous: Option<&Object>,
        now: Instant,
        queue: &mut Queue<String>,
    ) {
        match (source, notice) {
            (0, _) => self.follow.observe_service(notice, queue),
            (1, _) => self.follow.observe_pod(notice, previous, now, queue),
            (3, _) => self.near.observe_node(notice, previous, queue),
            (_, Notice::Put(slice) | Notice::Deleted(slice)) => {
                // Our own writes come by here, too: who looks finds that there is nothing to do.
                for slice in [Some(&**slice), previous].into_iter().flatten().filter(|slice| is_ours(slice)) {
                    if let Some(service) = slice.label(SERVICE_NAME).filter(|name| !name.is_empty()) {
                        queue.add_at(key(slice.namespace(), service), now + limits::SLICES_PAUSE);
                    }
                }
            }
            _ => {}
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let (follow, near) = (self.follow.clone(), self.near.clone());
        async move {
            match sync(&follow, &near, name).await {
                Ok(()) => Verdict::Done,
                Err(status) if is_about_the_namespace(&status) => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

fn is_ours(slice: &Object) -> bool {
    slice.label(MANAGED_BY.0) == Some(MANAGED_BY.1)
}

async fn sync(follow: &Follow, near: &NearServices, name: String) -> Result<(), Status> {
    let Looked::Selected(selected) = follow.look(&name).await? else {
        near.forget(&name);
        return Ok(());
    };
    let Selected { service, pods, trigger, seen } = *selected;
    let registry = &follow.registry;
    let slices = built_in(registry, SLICES.0, "v1", SLICES.1)?;
    let namespace = service.metadata.namespace.as_str();
    let existing = existing(registry, &slices, namespace, &service.metadata.name, MANAGED_BY.1).await?;
    let zones = zones(registry, &pods).await?;
    let mut lists = PortLists::default();
    let (endpoints, lost) = endpoints(&service, &pods, &zones, &mut lists)?;
    let wanted = endpoints.into_iter().map(|(family, groups)| WantedSlices {
        family,
        groups: groups.into_iter().map(|(list, endpoints)| (&lists.lists[list], endpoints)).collect(),
    });
    let trigger = trigger.and_then(written);
    let wanted: Vec<WantedSlices<'_>> = wanted.collect();
    let (of, family) = ((name.as_str(), &service), wanted.first().map(|wanted| wanted.family));
    let shares = match Closeness::of(&service) {
        Closeness::Automatic => near.shares(registry, &name).await?,
        _ => {
            near.tell_end(registry, of, family).await;
            Arc::default()
        }
    };
    let mut plan = reconcile(&service, wanted, existing, trigger.as_deref(), &shares);
    let told = std::mem::take(&mut plan.told);
    let carried_out = write(registry, &slices, namespace, &service.metadata.uid, plan).await;
    near.tell(registry, of, told).await;
    if carried_out.is_ok() {
        follow.keep(name.clone(), seen);
    }
    let done = carried_out.and_then(|()| match lost {
        Some((pod, node)) => {
            let why = format!("skipping Pod {pod} for Service {name}: Node {node} Not Found");
            Err(Status::new(Reason::InternalError, why))
        }
        None => Ok(()),
    });
    if let Err(status) = &done
        && !is_about_the_namespace(status)
        && !matches!(status.reason, Reason::Conflict | Reason::AlreadyExists)
    {
        let why = format!("Error updating Endpoint Slices for Service {name}: {}", status.message);
        say(registry, &service, ServiceEvent::warning(FAILED, why)).await;
    }
    done
}

/// The slices of a service that somebody keeps, those that are being deleted left out.
///
/// # Errors
/// The read failed, or there may be slices that cannot be read.
pub async fn existing(
    registry: &ActingRegistry,
    slices: &Arc<Served>,
    namespace: &str,
    service: &str,
    manager: &str,
) -> Result<Vec<Value>, Status> {
    let objects = registry.objects(&collection(slices, Some(namespace))).await?;
    objects.are_all()?;
    let mut found = Vec::new();
    for (at, slice) in objects.iter().enumerate() {
        if at % limits::PODS_LOOKED_AT_MAX == limits::PODS_LOOKED_AT_MAX - 1 {
            tokio::task::yield_now().await;
        }
        if slice.label(MANAGED_BY.0) == Some(manager) && slice.label(SERVICE_NAME) == Some(service) {
            found.push(slices.to_value(slice)?);
        }
    }
    found.retain(|slice| slice["metadata"]["deletionTimestamp"].is_null());
    Ok(found)
}

/// The nodes of the pods that are there, with their zones.
async fn zones(
    registry: &ActingRegistry,
    pods: &[SelectedPod],
) -> Result<BTreeMap<String, Option<String>>, Status> {
    let names: BTreeSet<&str> = pods.iter().map(|pod| pod.spec.node_name.as_str()).collect();
    let nodes = registry.objects(&collection(&built_in(registry, "", "v1", "nodes")?, None)).await?;
    let of_pods = nodes.iter().filter(|node| names.contains(node.name()));
    let zone = |node: &Object| node.label(ZONE).filter(|zone| !zone.is_empty()).map(str::to_owned);
    Ok(of_pods.map(|node| (node.name().to_owned(), zone(node))).collect())
}

/// Endpoints by family and list of ports.
type Groups = Vec<(AddressFamily, BTreeMap<usize, Vec<Value>>)>;

/// The endpoints of `pods`, and a pod that is left out because its node is not there, with that.
fn endpoints(
    service: &Service,
    pods: &[SelectedPod],
    zones: &BTreeMap<String, Option<String>>,
    lists: &mut PortLists,
) -> Result<(Groups, Option<(String, String)>), Status> {
    let mut groups: Groups =
        AddressFamily::of_service(service).into_iter().map(|family| (family, BTreeMap::new())).collect();
    let mut lost = None;
    for pod in pods.iter().filter(|pod| pod.is_reachable()) {
        let list = lists.of(service, pod)?;
        let node = zones.get(&pod.spec.node_name);
        let is_lost = node.is_none() && !service.spec.publish_not_ready_addresses;
        if is_lost {
            lost = Some((pod.metadata.name.clone(), pod.spec.node_name.clone()));
        }
        for (family, groups) in &mut groups {
            let group = groups.entry(list).or_default();
            let addresses: Vec<String> = pod.addresses(*family).collect();
            if !is_lost && !addresses.is_empty() {
                group.push(endpoint(service, pod, node.and_then(Option::as_deref), addresses));
            }
        }
    }
    Ok((groups, lost))
}

fn endpoint(service: &Service, pod: &SelectedPod, zone: Option<&str>, addresses: Vec<String>) -> Value {
    let (serving, terminating) = (pod.is_ready(), pod.is_deleting());
    let ready = service.spec.publish_not_ready_addresses || (serving && !terminating);
    let meta = &pod.metadata;
    let mut endpoint = Map::new();
    endpoint.insert("addresses".to_owned(), json!(addresses));
    let conditions = json!({ "ready": ready, "serving": serving, "terminating": terminating });
    endpoint.insert("conditions".to_owned(), conditions);
    let target = json!({ "kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid });
    endpoint.insert("targetRef".to_owned(), target);
    let node = Some(pod.spec.node_name.as_str()).filter(|node| !node.is_empty());
    for (member, value) in [("nodeName", node), ("zone", zone), ("hostname", pod.hostname_in(service))] {
        if let Some(value) = value {
            endpoint.insert(member.to_owned(), json!(value));
        }
    }
    Value::Object(endpoint)
}

/// Carries out a plan.
///
/// - `owner`: the uid of what the slices are made for.
///
/// # Errors
/// A write failed, or somebody else was faster: then the rest is to be planned anew.
pub async fn write(
    registry: &ActingRegistry,
    slices: &Arc<Served>,
    namespace: &str,
    owner: &str,
    plan: SlicePlan,
) -> Result<(), Status> {
    let is_owned = |slice: &Value| {
        // Few: whom one slice is made for.
        slice["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|known| known["uid"] == owner)
    };
    let target =
        |slice: &Value| named(slices, namespace, slice["metadata"]["name"].as_str().unwrap_or_default());
    for mut slice in plan.create {
        let at = target(&slice);
        match create(registry, &collection(slices, Some(namespace)), slice.clone()).await {
            Err(status) if status.reason == Reason::AlreadyExists => {
                let found = find(registry, &at).await?.map(|found| slices.to_value(&found)).transpose()?;
                if found.is_some_and(|found| is_owned(&found)) {
                    // Another server was first: what is still to be done is found out anew.
                    return Err(status);
                }
                // It is somebody else's: ours gets a name of its own.
                if let Some(metadata) = slice["metadata"].as_object_mut() {
                    metadata.remove("name");
                }
                create(registry, &collection(slices, Some(namespace)), slice).await?;
            }
            done => done?,
        }
    }
    for slice in plan.update {
        update(registry, &target(&slice), slice).await?;
    }
    for slice in plan.delete {
        let uid = slice["metadata"]["uid"].as_str().map(str::to_owned);
        let preconditions = Preconditions { uid, ..Preconditions::default() };
        delete(registry, &target(&slice), &DeleteOptions { preconditions, ..DeleteOptions::default() })
            .await?;
    }
    Ok(())
}
