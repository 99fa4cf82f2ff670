//! endpointslice-mirroring-controller: Endpoints that somebody writes for a service without a selector are in
//! EndpointSlices, too.
//!
//! In: Endpoints, services and slices. Out: slices, at most one for each family and list of ports. Kept is
//! which services have such slices. Never: mirrors what endpoints-controller wrote.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/endpointslicemirroring`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_object::Object;
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use memchr::memmem;
use serde_json::{Map, Value, json};

use super::endpoints::LEADER;
use super::follow::{key, split};
use super::ports::key_of;
use super::reconcile::{MANAGED_BY, SERVICE_NAME, SliceNames, SlicePlan, identity, is_same, ports_of};
use super::slices::{existing, write};
use super::subsets::{Address, repack};
use super::triggers::TRIGGER_TIME;
use super::view::{AddressFamily, Service, parsed};
use crate::acting::ActingRegistry;
use crate::limits;
use crate::objects::{built_in, collection, find, named};
use crate::queue::{Queue, Verdict};
use crate::run::Named;
use crate::service_accounts::is_about_the_namespace;

const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Addresses of a subset that are mirrored, as kube-controller-manager has it by default.
const ADDRESSES_MAX: usize = 1_000;

/// The controller.
pub struct MirrorController {
    registry: ActingRegistry,
    // namespace/name of services that have, or had, slices of ours
    mirrored: Arc<Mutex<HashSet<String>>>,
}

impl MirrorController {
    pub fn new(registry: ActingRegistry) -> MirrorController {
        MirrorController { registry, mirrored: Arc::default() }
    }
}

impl Named for MirrorController {
    const NAME: &'static str = crate::Controller::EndpointSliceMirroring.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        let all = [("", "endpoints"), ("", "services"), ("discovery.k8s.io", "endpointslices")];
        let informer = |(group, resource): (&str, &str)| {
            let served = built_in(&self.registry, group, "v1", resource)?;
            self.registry.informer(&collection(&served, None), &ListOptions::default())
        };
        all.into_iter().map(informer).collect()
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
        let (Notice::Put(object) | Notice::Deleted(object)) = notice else { return };
        let both = || [Some(&**object), previous].into_iter().flatten();
        let name = key(object.namespace(), object.name());
        match source {
            0 if both().any(is_mirrored) => queue.add(name),
            1 if both().any(|service| Service::of(service).spec.selector.is_empty()) => queue.add(name),
            2 => {
                for slice in both().filter(|slice| slice.label(MANAGED_BY.0) == Some(MANAGER)) {
                    if let Some(service) = slice.label(SERVICE_NAME).filter(|name| !name.is_empty()) {
                        let name = key(slice.namespace(), service);
                        self.mirrored.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
                        queue.add_at(name, now + limits::SLICES_PAUSE);
                    }
                }
            }
            _ => {}
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let (registry, mirrored) = (self.registry.clone(), self.mirrored.clone());
        async move {
            match sync(&registry, &mirrored, &name).await {
                Ok(()) => Verdict::Done,
                Err(status) if is_about_the_namespace(&status) => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

/// Whether Endpoints are to be seen elsewhere at all.
fn is_mirrored(endpoints: &Object) -> bool {
    endpoints.label(SKIP) != Some("true") && memmem::find(&endpoints.metadata(), LEADER.as_bytes()).is_none()
}

async fn sync(
    registry: &ActingRegistry,
    mirrored: &Mutex<HashSet<String>>,
    name: &str,
) -> Result<(), Status> {
    let (namespace, service) = split(name);
    let endpoints = built_in(registry, "", "v1", "endpoints")?;
    let found = find(registry, &named(&endpoints, namespace, service)).await?;
    let found = found.filter(|found| is_mirrored(found));
    let services = built_in(registry, "", "v1", "services")?;
    let of = find(registry, &named(&services, namespace, service)).await?;
    let is_wanted = of.is_some_and(|of| Service::of(&of).spec.selector.is_empty());
    let is_known = mirrored.lock().unwrap_or_else(PoisonError::into_inner).contains(name);
    let found = found.filter(|_| is_wanted);
    if found.is_none() && !is_known {
        return Ok(());
    }
    let slices = built_in(registry, "discovery.k8s.io", "v1", "endpointslices")?;
    let existing = existing(registry, &slices, namespace, service, MANAGER).await?;
    let Some(found) = found else {
        let plan = SlicePlan { delete: existing, ..SlicePlan::default() };
        write(registry, &slices, namespace, "", plan).await?;
        mirrored.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        return Ok(());
    };
    let endpoints = endpoints.to_value(&found)?;
    let owner = endpoints["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    write(registry, &slices, namespace, &owner, plan(&endpoints, existing)).await
}

/// Ports, and the endpoints that have them.
type Group = (Vec<Value>, Vec<Value>);

/// The slices that mirror `endpoints`.
pub fn plan(endpoints: &Value, existing: Vec<Value>) -> SlicePlan {
    let uid = endpoints["metadata"]["uid"].as_str().unwrap_or_default();
    let name = endpoints["metadata"]["name"].as_str().unwrap_or_default();
    let mut names = SliceNames::new(uid, name, &existing);
    let mut by_ports: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    for slice in existing {
        let family = slice["addressType"].as_str().unwrap_or_default().to_owned();
        by_ports.entry((family, ports_of(&slice))).or_default().push(slice);
    }
    let mut plan = SlicePlan::default();
    for ((family, ports), wanted) in wanted(endpoints) {
        let mut slices = by_ports.remove(&(family.name().to_owned(), ports)).unwrap_or_default();
        if slices.is_empty() || wanted.1.is_empty() {
            plan.delete.append(&mut slices);
        } else {
            plan.delete.extend(slices.drain(1..));
        }
        if wanted.1.is_empty() {
            continue;
        }
        let slice = mirror(endpoints, family, wanted);
        match slices.pop() {
            Some(old) if is_mirror(&old, &slice) => {}
            Some(old) => plan.update.push(over(slice, &old)),
            None => plan.create.push(slice),
        }
    }
    plan.delete.extend(by_ports.into_values().flatten());
    recycle(&mut plan);
    if !endpoints["metadata"]["deletionTimestamp"].is_null() {
        plan.create.clear();
    }
    plan.create.iter_mut().for_each(|slice| names.give(slice));
    plan
}

/// By family and the text of ports.
fn wanted(endpoints: &Value) -> BTreeMap<(AddressFamily, String), Group> {
    let mut groups: BTreeMap<(AddressFamily, String), Group> = BTreeMap::new();
    for (ports, addresses) in repack(&endpoints["subsets"]) {
        let ports: Vec<Value> = ports.iter().map(port).collect();
        let key = key_of(&ports);
        let readable =
            addresses.iter().filter_map(|address| Some((parsed(address.value["ip"].as_str()?)?, address)));
        for (ip, address) in readable.take(ADDRESSES_MAX) {
            let group = groups
                .entry((AddressFamily::of(ip), key.clone()))
                .or_insert_with(|| (ports.clone(), Vec::new()));
            group.1.push(endpoint(&ip.to_string(), address));
        }
    }
    for (_, endpoints) in groups.values_mut() {
        // Of two that are the same endpoint the last counts.
        let last: HashMap<String, usize> =
            endpoints.iter().enumerate().map(|(at, endpoint)| (identity(endpoint), at)).collect();
        let mut at = 0;
        endpoints.retain(|endpoint| {
            at += 1;
            last.get(&identity(endpoint)) == Some(&(at - 1))
        });
        endpoints.truncate(ADDRESSES_MAX);
    }
    groups
}

fn endpoint(ip: &str, address: &Address) -> Value {
    let mut endpoint = json!({ "addresses": [ip], "conditions": { "ready": address.is_ready } });
    for member in ["targetRef", "nodeName", "hostname"] {
        if let Some(value) = address.value.get(member).filter(|value| **value != "") {
            endpoint[member] = value.clone();
        }
    }
    endpoint
}

fn port(port: &Value) -> Value {
    let mut mirrored = json!({ "name": port["name"].as_str().unwrap_or_default(), "port": port["port"] });
    for member in ["protocol", "appProtocol"] {
        if let Some(value) = port.get(member) {
            mirrored[member] = value.clone();
        }
    }
    mirrored
}

fn mirror(endpoints: &Value, family: AddressFamily, (ports, wanted): Group) -> Value {
    let meta = &endpoints["metadata"];
    let members = |member: &str| meta[member].as_object().cloned().unwrap_or_default();
    let (mut labels, mut annotations) = (members("labels"), members("annotations"));
    labels.insert(SERVICE_NAME.to_owned(), meta["name"].clone());
    labels.insert(MANAGED_BY.0.to_owned(), json!(MANAGER));
    annotations.retain(|name, _| name != TRIGGER_TIME && name != APPLIED);
    let owner = json!({
        "apiVersion": "v1", "kind": "Endpoints", "name": meta["name"], "uid": meta["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "generateName": format!("{}-", meta["name"].as_str().unwrap_or_default()),
            "namespace": meta["namespace"], "labels": labels, "annotations": annotations,
            "ownerReferences": [owner],
        },
        "addressType": family.name(), "endpoints": wanted, "ports": ports,
    })
}

/// Whether a slice mirrors what a new one would.
fn is_mirror(old: &Value, new: &Value) -> bool {
    let members = |slice: &Value, member: &str| -> Map<String, Value> {
        slice["metadata"][member].as_object().cloned().unwrap_or_default()
    };
    let are_same = |member: &str| members(old, member) == members(new, member);
    let list = |slice: &'_ Value| slice["endpoints"].as_array().cloned().unwrap_or_default();
    let (had, wanted) = (list(old), list(new));
    let known: HashMap<String, &Value> = had.iter().map(|endpoint| (identity(endpoint), endpoint)).collect();
    let owner = |slice: &Value| slice["metadata"]["ownerReferences"][0]["uid"].clone();
    let are_there = wanted
        .iter()
        .all(|endpoint| known.get(&identity(endpoint)).is_some_and(|known| is_same(known, endpoint)));
    had.len() == wanted.len()
        && are_there
        && are_same("labels")
        && are_same("annotations")
        && owner(old) == owner(new)
}

/// A new slice in the place of an old one.
fn over(mut slice: Value, old: &Value) -> Value {
    for member in ["name", "resourceVersion", "uid"] {
        slice["metadata"][member] = old["metadata"][member].clone();
    }
    slice
}

/// Writes what would be created over what would be deleted, of the same family.
fn recycle(plan: &mut SlicePlan) {
    let mut old: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for slice in std::mem::take(&mut plan.delete) {
        old.entry(slice["addressType"].to_string()).or_default().push(slice);
    }
    for slice in std::mem::take(&mut plan.create) {
        match old.get_mut(&slice["addressType"].to_string()).and_then(Vec::pop) {
            Some(old) => plan.update.push(over(slice, &old)),
            None => plan.create.push(slice),
        }
    }
    plan.delete = old.into_values().flatten().collect();
}
