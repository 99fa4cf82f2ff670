//! Which EndpointSlices a service is to have, and what is to be done to those that it has.
//!
//! In: a service, the endpoints of its pods, its slices. Out: a [`SlicePlan`]. Endpoints stay in the slice
//! that they are in; new ones fill up slices that change anyway, then one that has room for all, then new
//! slices.
//! Pure: the same in, the same out. Costs as much as there are endpoints and slices, sorted.
//!
//! Source: k8s.io/endpointslice v0.36.3 `reconciler.go`.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::hints::Closeness;
use super::ports::{PortList, key_of};
use super::topology::{self, ZoneShares};
use super::triggers::TRIGGER_TIME;
use super::view::{AddressFamily, Service};

/// Who keeps a slice, as its label says.
pub const MANAGED_BY: (&str, &str) =
    ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io");
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub const HEADLESS: &str = "service.kubernetes.io/headless";

/// Endpoints of a slice, as kube-controller-manager has it by default.
pub const ENDPOINTS_MAX: usize = 100;

/// Of names that are made: no vowels, and nothing that looks like another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// What is to be written, each object whole; and what is to go.
#[derive(Debug, Default)]
pub struct SlicePlan {
    pub create: Vec<Value>,
    pub update: Vec<Value>,
    pub delete: Vec<Value>,
    /// Of a service that leaves its hints to the server: whether it has some, or why not.
    pub told: Vec<(AddressFamily, Result<(), String>)>,
}

/// The endpoints that a service is to have in one family, by what their ports are.
pub struct WantedSlices<'w> {
    pub family: AddressFamily,
    /// Ports, and the endpoints that have them, in the order in which they are given out.
    pub groups: Vec<(&'w PortList, Vec<Value>)>,
}

/// Plans the slices of `service`.
///
/// - `existing`: its slices, those that are being deleted left out.
/// - `trigger`: what the annotation is to say of when something changed.
/// - `shares`: what zones have of the processors, for a service that leaves its hints to the server.
pub fn reconcile(
    service: &Service,
    wanted: Vec<WantedSlices<'_>>,
    existing: Vec<Value>,
    trigger: Option<&str>,
    shares: &ZoneShares,
) -> SlicePlan {
    let mut names = SliceNames::new(&service.metadata.uid, &service.metadata.name, &existing);
    let mut by_family: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for slice in existing {
        by_family.entry(text(&slice["addressType"]).to_owned()).or_default().push(slice);
    }
    let mut plan = SlicePlan::default();
    for wanted in wanted {
        let existing = by_family.remove(wanted.family.name()).unwrap_or_default();
        let of_family = plan_family(service, wanted, existing, (&mut names, shares));
        plan.create.extend(of_family.create);
        plan.update.extend(of_family.update);
        plan.delete.extend(of_family.delete);
        plan.told.extend(of_family.told);
    }
    plan.delete.extend(by_family.into_values().flatten());
    if service.metadata.deletion_timestamp.is_some() {
        plan.create.clear();
    }
    for slice in plan.create.iter_mut().chain(&mut plan.update) {
        stamp(slice, trigger);
    }
    plan
}

fn plan_family(
    service: &Service,
    wanted: WantedSlices<'_>,
    existing: Vec<Value>,
    (names, shares): (&mut SliceNames, &ZoneShares),
) -> SlicePlan {
    let family = wanted.family;
    let mut plan = SlicePlan::default();
    let mut by_ports: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut unchanged = Vec::new();
    for slice in existing {
        match is_owned(&slice, service) {
            true => by_ports.entry(ports_of(&slice)).or_default().push(slice),
            false => plan.delete.push(slice),
        }
    }
    for (ports, endpoints) in wanted.groups {
        let slices = by_ports.remove(&ports.key).unwrap_or_default();
        let new = |endpoints| new_slice(service, family, &ports.ports, endpoints);
        unchanged.extend(plan_ports(service, slices, endpoints, new, &mut plan));
    }
    plan.delete.extend(by_ports.into_values().flatten());
    if plan.create.is_empty() && plan.update.is_empty() && unchanged.is_empty() {
        // There is always one, be it without endpoints.
        let placeholder = new_slice(service, family, &[], Vec::new());
        match plan.delete.as_slice() {
            [only] if is_owned(only, service) && is_placeholder(only, &placeholder) => {
                unchanged.append(&mut plan.delete)
            }
            _ => plan.create.push(placeholder),
        }
    }
    match Closeness::of(service) {
        Closeness::Automatic => {
            let hinted = topology::hint(shares, &mut plan, unchanged);
            plan.told.push((family, hinted));
        }
        closeness => {
            for mut slice in unchanged {
                if closeness.hint(&mut slice) {
                    plan.update.push(slice);
                }
            }
            for slice in plan.create.iter_mut().chain(&mut plan.update) {
                closeness.hint(slice);
            }
        }
    }
    reuse(service, &mut plan);
    for slice in &mut plan.create {
        names.give(slice);
    }
    plan
}

/// Plans the slices of one list of ports. Returns those that stay as they are.
fn plan_ports(
    service: &Service,
    slices: Vec<Value>,
    endpoints: Vec<Value>,
    new: impl Fn(Vec<Value>) -> Value,
    plan: &mut SlicePlan,
) -> Vec<Value> {
    let mut desired = Desired::new(endpoints);
    let (mut unchanged, mut changed) = (Vec::new(), Vec::new());
    for mut slice in slices {
        let had = slice["endpoints"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let mut kept = Vec::with_capacity(had.len());
        let mut is_other = false;
        for endpoint in &had {
            if let Some(wanted) = desired.take(endpoint) {
                is_other |= !is_same(&wanted, endpoint);
                kept.push(wanted);
            }
        }
        let labels = labels(service);
        let has_other_labels = own_labels(&slice["metadata"]["labels"]) != own_labels(&labels);
        is_other |= kept.len() != had.len();
        if is_other && kept.is_empty() {
            slice["endpoints"] = Value::Array(had);
            plan.delete.push(slice);
        } else if is_other || has_other_labels {
            slice["endpoints"] = Value::Array(if is_other { kept } else { had });
            slice["metadata"]["labels"] = labels;
            changed.push(slice);
        } else {
            slice["endpoints"] = Value::Array(had);
            unchanged.push(slice);
        }
    }
    // The fullest first.
    changed.sort_by_key(|slice| std::cmp::Reverse(length(slice)));
    for slice in &mut changed {
        desired.fill(slice);
    }
    while desired.left() > 0 {
        // All slices are full but few, and one is looked for at most once.
        let fits = (desired.left() < ENDPOINTS_MAX).then(|| with_room(&unchanged, desired.left())).flatten();
        match fits {
            Some(at) => {
                let mut slice = unchanged.swap_remove(at);
                desired.fill(&mut slice);
                changed.push(slice);
            }
            None => plan.create.push(new(desired.next(ENDPOINTS_MAX))),
        }
    }
    plan.update.append(&mut changed);
    unchanged
}

/// Endpoints to be given a place.
struct Desired {
    // In order; none where it has its place.
    endpoints: Vec<Option<Value>>,
    // what makes it that endpoint -> where it is
    at: HashMap<String, usize>,
    next: usize,
    left: usize,
}

impl Desired {
    /// Of two that are the same endpoint the last counts.
    fn new(endpoints: Vec<Value>) -> Desired {
        let (mut all, mut at) = (Vec::<Option<Value>>::with_capacity(endpoints.len()), HashMap::new());
        for endpoint in endpoints {
            if let Some(same) = at.insert(identity(&endpoint), all.len()) {
                all[same] = None;
            }
            all.push(Some(endpoint));
        }
        Desired { left: at.len(), endpoints: all, at, next: 0 }
    }

    fn left(&self) -> usize {
        self.left
    }

    fn take(&mut self, like: &Value) -> Option<Value> {
        let at = self.at.remove(&identity(like))?;
        self.left -= 1;
        self.endpoints[at].take()
    }

    fn next(&mut self, count: usize) -> Vec<Value> {
        let mut given = Vec::new();
        while given.len() < count && self.next < self.endpoints.len() {
            given.extend(self.endpoints[self.next].take());
            self.next += 1;
        }
        self.left -= given.len();
        given
    }

    fn fill(&mut self, slice: &mut Value) {
        let room = ENDPOINTS_MAX.saturating_sub(length(slice));
        if let Some(endpoints) = slice["endpoints"].as_array_mut() {
            endpoints.extend(self.next(room));
        }
    }
}

/// What makes an endpoint that one: its addresses, its hostname, and which pod it is.
pub fn identity(endpoint: &Value) -> String {
    let mut addresses: Vec<&str> =
        endpoint["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    addresses.sort_unstable();
    let target = &endpoint["targetRef"];
    json!([addresses, text(&endpoint["hostname"]), text(&target["namespace"]), text(&target["name"])])
        .to_string()
}

/// Whether an endpoint says of itself what another says, of which it is the same.
pub fn is_same(one: &Value, two: &Value) -> bool {
    let of_target = |endpoint: &Value| -> Map<String, Value> {
        let mut target = endpoint["targetRef"].as_object().cloned().unwrap_or_default();
        target.remove("resourceVersion");
        target
    };
    ["nodeName", "zone", "conditions"].iter().all(|member| one[*member] == two[*member])
        && of_target(one) == of_target(two)
}

/// Which of `slices` is the fullest of those that have room for `count` more.
fn with_room(slices: &[Value], count: usize) -> Option<usize> {
    let fit = slices.iter().enumerate().filter(|(_, slice)| length(slice) + count <= ENDPOINTS_MAX);
    fit.max_by_key(|(_, slice)| length(slice)).map(|(at, _)| at)
}

/// Writes what would be created over what would be deleted.
fn reuse(service: &Service, plan: &mut SlicePlan) {
    let mut left = Vec::new();
    for old in std::mem::take(&mut plan.delete) {
        let fits = is_owned(&old, service)
            && plan.create.last().is_some_and(|new| new["addressType"] == old["addressType"]);
        match plan.create.pop_if(|_| fits) {
            Some(mut slice) => {
                for member in ["name", "resourceVersion", "uid"] {
                    slice["metadata"][member] = old["metadata"][member].clone();
                }
                plan.update.push(slice);
            }
            None => left.push(old),
        }
    }
    plan.delete = left;
}

fn new_slice(service: &Service, family: AddressFamily, ports: &[Value], endpoints: Vec<Value>) -> Value {
    let meta = &service.metadata;
    let owner = json!({
        "apiVersion": "v1", "kind": "Service", "name": meta.name, "uid": meta.uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "generateName": format!("{}-", meta.name), "namespace": meta.namespace,
            "labels": labels(service), "ownerReferences": [owner],
        },
        "addressType": family.name(), "endpoints": endpoints, "ports": ports,
    })
}

/// The labels of the slices of a service: its own, and what they are found by.
fn labels(service: &Service) -> Value {
    let own = service.metadata.labels.iter().filter(|(label, _)| !is_reserved(label));
    let mut labels: Map<String, Value> = own.map(|(label, value)| (label.clone(), json!(value))).collect();
    if service.is_headless() {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    labels.insert(SERVICE_NAME.to_owned(), json!(service.metadata.name));
    labels.insert(MANAGED_BY.0.to_owned(), json!(MANAGED_BY.1));
    Value::Object(labels)
}

fn is_reserved(label: &str) -> bool {
    [HEADLESS, SERVICE_NAME, MANAGED_BY.0].contains(&label)
}

fn own_labels(labels: &Value) -> BTreeMap<&String, &Value> {
    labels.as_object().into_iter().flatten().filter(|(label, _)| !is_reserved(label)).collect()
}

fn is_placeholder(slice: &Value, placeholder: &Value) -> bool {
    let is_empty = |member: &str| slice[member].as_array().is_none_or(Vec::is_empty);
    slice["metadata"]["labels"] == placeholder["metadata"]["labels"]
        && is_empty("endpoints")
        && is_empty("ports")
}

/// Whether a slice is of this very service.
fn is_owned(slice: &Value, service: &Service) -> bool {
    let is_service = |owner: &Value| {
        owner["uid"] == service.metadata.uid.as_str()
            && owner["kind"] == "Service"
            && owner["apiVersion"] == "v1"
    };
    // Once: for the whole slice.
    slice["metadata"]["ownerReferences"].as_array().into_iter().flatten().any(is_service)
}

/// The text of the ports of a slice.
pub fn ports_of(slice: &Value) -> String {
    key_of(slice["ports"].as_array().map(Vec::as_slice).unwrap_or_default())
}

fn stamp(slice: &mut Value, trigger: Option<&str>) {
    let metadata = &mut slice["metadata"];
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    match (trigger, metadata["annotations"].as_object_mut()) {
        (Some(time), Some(annotations)) => drop(annotations.insert(TRIGGER_TIME.to_owned(), json!(time))),
        (None, Some(annotations)) => drop(annotations.remove(TRIGGER_TIME)),
        (_, None) => {}
    }
}

fn length(slice: &Value) -> usize {
    slice["endpoints"].as_array().map_or(0, Vec::len)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Names of new slices. They look as if drawn, and are not: of servers that share a store one makes a slice,
/// and the others find that it is there.
pub struct SliceNames {
    of: String,
    prefix: String,
    taken: Vec<String>,
}

impl SliceNames {
    /// - `uid`: of what the slices are made for.
    pub fn new(uid: &str, name: &str, existing: &[Value]) -> SliceNames {
        let mut taken: Vec<String> =
            existing.iter().map(|slice| text(&slice["metadata"]["name"]).to_owned()).collect();
        taken.sort_unstable();
        SliceNames { of: uid.to_owned(), prefix: format!("{name}-"), taken }
    }

    /// Gives a new slice its name.
    pub fn give(&mut self, slice: &mut Value) {
        let mut hasher = DefaultHasher::new();
        (&self.of, text(&slice["addressType"]), ports_of(slice)).hash(&mut hasher);
        let first = hasher.finish();
        // As many rounds as it has slices of these ports at most: each takes one name.
        for round in 0..=self.taken.len() as u64 {
            let name = format!("{}{}", self.prefix, suffix(first.wrapping_add(round)));
            if let Err(place) = self.taken.binary_search(&name) {
                self.taken.insert(place, name.clone());
                slice["metadata"]["name"] = json!(name);
                return;
            }
        }
    }
}

fn suffix(mut number: u64) -> String {
    let mut text = String::new();
    for _ in 0..5 {
        text.push(ALPHABET[(number % ALPHABET.len() as u64) as usize] as char);
        number /= ALPHABET.len() as u64;
    }
    text
}
