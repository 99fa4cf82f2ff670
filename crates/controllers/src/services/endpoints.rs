//! endpoints-controller: the Endpoints of each service that selects pods.
//!
//! In: services, pods and Endpoints. Out: Endpoints, of the name of their service, created, replaced, and
//! deleted with it. At the start those are deleted that have no service any more.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/endpoint`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_apimachinery::Status;
use forebay_apimachinery::options::DeleteOptions;
use forebay_catalog::Target;
use forebay_object::Object;
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use memchr::memmem;
use serde_json::{Map, Value, json};

use super::follow::{Follow, Looked, Selected, key, split};
use super::ports::PortLists;
use super::reconcile::HEADLESS;
use super::subsets::{ADDRESSES_MAX, Address, are_same, pack, truncate};
use super::triggers::{TRIGGER_TIME, written};
use super::view::{AddressFamily, SelectedPod, Service};
use crate::acting::ActingRegistry;
use crate::objects::{built_in, collection, create, delete, find, named, update};
use crate::queue::{Queue, Verdict};
use crate::run::Named;
use crate::service_accounts::is_about_the_namespace;

const MANAGED_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// Of Endpoints that some program leads by, and that have no service.
pub const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// The controller.
pub struct EndpointsController {
    follow: Arc<Follow>,
    has_synced: AtomicBool,
}

impl EndpointsController {
    pub fn new(registry: ActingRegistry) -> EndpointsController {
        EndpointsController { follow: Arc::new(Follow::new(registry)), has_synced: AtomicBool::new(false) }
    }
}

impl Named for EndpointsController {
    const NAME: &'static str = crate::Controller::Endpoints.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        self.follow.informers(("", "endpoints"))
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
            (_, Notice::Synced) => self.has_synced.store(true, Ordering::Relaxed),
            (_, Notice::Deleted(gone)) => queue.add(key(gone.namespace(), gone.name())),
            (_, Notice::Put(left))
                if !self.has_synced.load(Ordering::Relaxed)
                    && memmem::find(&left.metadata(), LEADER.as_bytes()).is_none() =>
            {
                queue.add(key(left.namespace(), left.name()));
            }
            _ => {}
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let follow = self.follow.clone();
        async move {
            match sync(&follow, name).await {
                Ok(()) => Verdict::Done,
                Err(status) if is_about_the_namespace(&status) => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

async fn sync(follow: &Follow, name: String) -> Result<(), Status> {
    let registry = &follow.registry;
    let endpoints = built_in(registry, "", "v1", "endpoints")?;
    let (namespace, service) = split(&name);
    let target = named(&endpoints, namespace, service);
    let selected = match follow.look(&name).await? {
        Looked::Gone => return delete(registry, &target, &DeleteOptions::default()).await,
        Looked::Unselective => return Ok(()),
        Looked::Selected(selected) => *selected,
    };
    let found = find(registry, &target).await?.map(|found| endpoints.to_value(&found)).transpose()?;
    write(registry, &target, found, &selected).await?;
    follow.keep(name, selected.seen);
    Ok(())
}

async fn write(
    registry: &ActingRegistry,
    target: &Target,
    found: Option<Value>,
    selected: &Selected,
) -> Result<(), Status> {
    let Selected { service, pods, trigger, .. } = selected;
    let mut subsets = subsets(service, pods)?;
    let is_new = found.is_none();
    let mut endpoints = found.unwrap_or_else(
        || json!({ "apiVersion": "v1", "kind": "Endpoints", "metadata": { "name": service.metadata.name } }),
    );
    if !is_new
        && are_same(&endpoints["subsets"], &json!(subsets))
        && has_labels(&endpoints, service)
        && is_within_capacity(&endpoints)
    {
        return Ok(());
    }
    let annotations = endpoints["metadata"]["annotations"].as_object().cloned();
    let mut annotations = annotations.unwrap_or_default();
    let time = trigger.and_then(written);
    let over = truncate(&mut subsets).then(|| "truncated".to_owned());
    for (name, value) in [(TRIGGER_TIME, time), (OVER_CAPACITY, over)] {
        match value {
            Some(value) => annotations.insert(name.to_owned(), json!(value)),
            None => annotations.remove(name),
        };
    }
    endpoints["metadata"]["annotations"] = Value::Object(annotations);
    endpoints["metadata"]["labels"] = labels(service);
    endpoints["subsets"] = Value::Array(subsets);
    match is_new {
        true => create(registry, &collection(&target.served, target.namespace.as_deref()), endpoints).await,
        false => update(registry, target, endpoints).await,
    }
}

fn subsets(service: &Service, pods: &[SelectedPod]) -> Result<Vec<Value>, Status> {
    let spec = &service.spec;
    let mut lists = PortLists::default();
    // list of ports -> who has them
    let mut groups: BTreeMap<usize, Vec<Address>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.is_reachable()) {
        if pod.is_deleting() && !spec.publish_not_ready_addresses {
            continue;
        }
        let Some(value) = address(service, pod) else { continue };
        let list = lists.of(service, pod)?;
        // A headless service may have no ports; of any other a pod that has none of them is no endpoint.
        let is_portless = spec.ports.is_empty() && spec.cluster_ip == "None";
        if is_portless || !lists.lists[list].ports.is_empty() {
            let is_ready = spec.publish_not_ready_addresses || pod.is_ready();
            groups.entry(list).or_default().push(Address { value, is_ready });
        }
    }
    pack(groups.into_iter().map(|(list, addresses)| (&lists.lists[list], addresses)).collect())
}

/// That of a pod in the first family of its service.
fn address(service: &Service, pod: &SelectedPod) -> Option<Value> {
    let spec = &service.spec;
    let family = match spec.ip_families.first() {
        Some(said) if said == AddressFamily::IPv6.name() => AddressFamily::IPv6,
        Some(_) => AddressFamily::IPv4,
        None if service.is_headless() => AddressFamily::of_text(&pod.status.pod_ip),
        None => AddressFamily::of_text(&spec.cluster_ip),
    };
    let ip = pod.addresses(family).next()?;
    let meta = &pod.metadata;
    let mut address = json!({
        "ip": ip, "nodeName": pod.spec.node_name,
        "targetRef": { "kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid },
    });
    if let Some(hostname) = pod.hostname_in(service) {
        address["hostname"] = json!(hostname);
    }
    Some(address)
}

fn labels(service: &Service) -> Value {
    let own = service.metadata.labels.iter().map(|(label, value)| (label.clone(), json!(value)));
    let mut labels: Map<String, Value> = own.collect();
    match service.is_headless() {
        true => labels.insert(HEADLESS.to_owned(), json!("")),
        false => labels.remove(HEADLESS),
    };
    labels.insert(MANAGED_BY.0.to_owned(), json!(MANAGED_BY.1));
    Value::Object(labels)
}

/// Whether Endpoints have the labels of their service, of being headless apart.
fn has_labels(endpoints: &Value, service: &Service) -> bool {
    let of = |labels: &Value| -> Map<String, Value> {
        let mut labels = labels.as_object().cloned().unwrap_or_default();
        labels.remove(HEADLESS);
        labels
    };
    of(&endpoints["metadata"]["labels"]) == of(&labels(service))
}

fn is_within_capacity(endpoints: &Value) -> bool {
    let count = |subset: &Value| {
        ["addresses", "notReadyAddresses"]
            .iter()
            .map(|member| subset[*member].as_array().map_or(0, Vec::len))
            .sum::<usize>()
    };
    let all = endpoints["subsets"].as_array().into_iter().flatten().map(count).sum::<usize>();
    all <= ADDRESSES_MAX && endpoints["metadata"]["annotations"].get(OVER_CAPACITY).is_none()
}
