//! Which zone each endpoint is for, where its service leaves that to the server: by the annotation
//! `service.kubernetes.io/topology-mode: Auto`.
//!
//! In: nodes, the slices of a service that are planned. Out: hints, by which a zone is led to as many
//! endpoints as it has of the processors; or why there are none, in upstream's words. Pure, and the same
//! whoever works it out: of zones that are alike the first by name comes first. Costs as much as there are
//! endpoints. Never: a hint for an endpoint that is not ready.
//!
//! Source: k8s.io/endpointslice v0.36.3 `topologycache`.

use std::collections::BTreeMap;

use forebay_object::Object;
use forebay_quota::Amount;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::hints::Closeness;
use super::reconcile::SlicePlan;
use super::view::read;

pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Nodes with one of these are not counted.
const EXCLUDED: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// What an endpoint may be asked for beyond its part.
const OVERLOAD_MAX: f64 = 0.2;

const NO_NODES: &str =
    "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
const NO_ZONE: &str = "One or more endpoints do not have a zone specified";
const TOO_FEW: &str = "Insufficient number of endpoints";
const TOO_UNEVEN: &str =
    "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold";

/// What a node counts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeShare {
    Nothing,
    /// It does not say where it is, or what it has.
    Unknown,
    /// Thousandths of processors, in a zone.
    Of(String, u64),
}

/// The part of all processors that each zone has. Empty where that cannot be told, or there is one zone
/// alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ZoneShares(BTreeMap<String, f64>);

/// What a zone is to have of the endpoints.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    desired: f64,
    maximum: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Node {
    status: NodeStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    allocatable: Option<BTreeMap<String, Value>>,
    conditions: Option<Vec<NodeCondition>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl NodeShare {
    pub fn of(node: &Object) -> NodeShare {
        if EXCLUDED.iter().any(|label| node.label(label).is_some()) {
            return NodeShare::Nothing;
        }
        let Node { status } = read(node);
        let mut conditions = status.conditions.into_iter().flatten();
        // Few: of one node.
        let ready = conditions.find(|condition| condition.kind == "Ready");
        if ready.is_none_or(|ready| ready.status != "True") {
            return NodeShare::Nothing;
        }
        let cpu = status.allocatable.as_ref().and_then(|all| Amount::of(all.get("cpu")?));
        let cpu = cpu.and_then(|cpu| u64::try_from(cpu.thousandths()).ok()).unwrap_or(0);
        match node.label(ZONE).filter(|zone| !zone.is_empty()) {
            Some(zone) if cpu > 0 => NodeShare::Of(zone.to_owned(), cpu),
            _ => NodeShare::Unknown,
        }
    }
}

impl ZoneShares {
    /// - `nodes`: all of them.
    pub fn of(nodes: impl IntoIterator<Item = NodeShare>) -> ZoneShares {
        let mut zones: BTreeMap<String, u64> = BTreeMap::new();
        for node in nodes {
            match node {
                NodeShare::Nothing => {}
                NodeShare::Unknown => return ZoneShares::default(),
                NodeShare::Of(zone, cpu) => {
                    let of_zone = zones.entry(zone).or_default();
                    *of_zone = of_zone.saturating_add(cpu);
                }
            }
        }
        if zones.len() < 2 {
            return ZoneShares::default();
        }
        let all: f64 = zones.values().map(|cpu| *cpu as f64).sum();
        ZoneShares(zones.into_iter().map(|(zone, cpu)| (zone, cpu as f64 / all)).collect())
    }

    /// What each zone is to have of so many endpoints.
    ///
    /// # Errors
    /// Why none can.
    fn allocations(&self, endpoints: usize) -> Result<BTreeMap<&str, Allocation>, String> {
        let zones = self.0.len();
        if zones == 0 {
            return Err(NO_NODES.to_owned());
        }
        let counted = |why: &str| format!("{why} ({endpoints} endpoints, {zones} zones)");
        if zones > endpoints {
            return Err(counted(TOO_FEW));
        }
        let desired = |share: &f64| share * endpoints as f64;
        let minimum = |share: &f64| (desired(share) * (1.0 / (1.0 + OVERLOAD_MAX))).ceil() as usize;
        let least: usize = self.0.values().map(minimum).sum();
        let spare = endpoints.checked_sub(least).ok_or_else(|| counted(TOO_UNEVEN))?;
        let allocation = |share: &f64| Allocation {
            desired: desired(share).max(minimum(share) as f64),
            maximum: minimum(share) + spare,
        };
        Ok(self.0.iter().map(|(zone, share)| (zone.as_str(), allocation(share))).collect())
    }
}

/// Gives the endpoints of the slices of one family their hints. Those of `unchanged` that need others are
/// updated, too.
///
/// # Errors
/// Why there are none; then none is left.
pub fn hint(shares: &ZoneShares, plan: &mut SlicePlan, mut unchanged: Vec<Value>) -> Result<(), String> {
    let hinted = try_hint(shares, plan, &mut unchanged);
    if hinted.is_err() {
        for slice in plan.create.iter_mut().chain(&mut plan.update) {
            Closeness::Anywhere.hint(slice);
        }
        for mut slice in unchanged {
            if Closeness::Anywhere.hint(&mut slice) {
                plan.update.push(slice);
            }
        }
    }
    hinted
}

fn try_hint(shares: &ZoneShares, plan: &mut SlicePlan, unchanged: &mut Vec<Value>) -> Result<(), String> {
    let ready = |slices: &[Value]| slices.iter().flat_map(ready_of).count();
    let allocations = shares.allocations(ready(&plan.create) + ready(&plan.update) + ready(unchanged))?;
    let mut hinted: BTreeMap<String, usize> = BTreeMap::new();
    for slice in std::mem::take(unchanged) {
        match fitting(&slice, &hinted, &allocations) {
            Some(more) => {
                more.into_iter().for_each(|(zone, count)| *hinted.entry(zone).or_default() += count);
                unchanged.push(slice);
            }
            None => plan.update.push(slice),
        }
    }
    // Each is for its own zone at first.
    for endpoint in ready_of_all(plan) {
        let zone = zone_of(endpoint).ok_or_else(|| NO_ZONE.to_owned())?;
        *hinted.entry(zone.clone()).or_default() += 1;
        endpoint.insert("hints".to_owned(), for_zone(&zone));
    }
    // Then those that have too many give some to those that have too few.
    let (mut giving, mut receiving) = exchange(&allocations, &hinted);
    for endpoint in ready_of_all(plan) {
        let Some(zone) = zone_of(endpoint) else { continue };
        let Some((to, _)) = receiving.first_key_value().map(|(to, count)| (to.clone(), *count)) else {
            break;
        };
        if take(&mut giving, &zone) {
            take(&mut receiving, &to);
            endpoint.insert("hints".to_owned(), for_zone(&to));
        }
    }
    Ok(())
}

/// How many hints for each zone a slice has that may stay as it is.
fn fitting(
    slice: &Value,
    hinted: &BTreeMap<String, usize>,
    allocations: &BTreeMap<&str, Allocation>,
) -> Option<BTreeMap<String, usize>> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for endpoint in ready_of(slice) {
        let zones = endpoint["hints"]["forZones"].as_array().filter(|zones| !zones.is_empty())?;
        for zone in zones {
            let zone = zone["name"].as_str().filter(|zone| allocations.contains_key(zone))?;
            *found.entry(zone.to_owned()).or_default() += 1;
        }
    }
    let fits = |(zone, count): (&String, &usize)| {
        let all = count + hinted.get(zone).copied().unwrap_or(0);
        allocations.get(zone.as_str()).is_some_and(|allocation| all <= allocation.maximum)
    };
    found.iter().all(fits).then_some(found)
}

/// How many each zone gives to others, and how many it gets of them.
fn exchange(
    allocations: &BTreeMap<&str, Allocation>,
    hinted: &BTreeMap<String, usize>,
) -> (BTreeMap<String, usize>, BTreeMap<String, usize>) {
    let (mut over, mut under): (BTreeMap<&str, f64>, BTreeMap<&str, f64>) = Default::default();
    for (zone, allocation) in allocations {
        let has = hinted.get(*zone).copied().unwrap_or(0) as f64;
        let list = if has > allocation.desired { &mut over } else { &mut under };
        list.insert(*zone, (has - allocation.desired).abs());
    }
    let (mut giving, mut receiving): (BTreeMap<String, usize>, BTreeMap<String, usize>) = Default::default();
    while let (Some((from, give)), Some((to, get))) = (most(&over), most(&under)) {
        if (give < 1.0 && get < 1.0) || give < 0.5 || get < 0.5 {
            break;
        }
        *giving.entry(from.to_owned()).or_default() += 1;
        *receiving.entry(to.to_owned()).or_default() += 1;
        over.insert(from, give - 1.0);
        under.insert(to, get - 1.0);
    }
    (giving, receiving)
}

fn most<'z>(zones: &BTreeMap<&'z str, f64>) -> Option<(&'z str, f64)> {
    let mut found: Option<(&str, f64)> = None;
    for (zone, count) in zones {
        if *count > found.map_or(0.0, |(_, most)| most) {
            found = Some((*zone, *count));
        }
    }
    found
}

/// One of what a zone has; whether there was one.
fn take(zones: &mut BTreeMap<String, usize>, zone: &str) -> bool {
    let Some(count) = zones.get_mut(zone) else { return false };
    *count -= 1;
    if *count == 0 {
        zones.remove(zone);
    }
    true
}

fn ready_of(slice: &Value) -> impl Iterator<Item = &Value> {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true)
}

fn ready_of_all(plan: &mut SlicePlan) -> impl Iterator<Item = &mut Map<String, Value>> {
    let slices = plan.create.iter_mut().chain(&mut plan.update);
    let endpoints = slices.flat_map(|slice| slice["endpoints"].as_array_mut().into_iter().flatten());
    let is_ready = |endpoint: &&mut Value| endpoint["conditions"]["ready"] == true;
    endpoints.filter(is_ready).filter_map(Value::as_object_mut)
}

fn zone_of(endpoint: &Map<String, Value>) -> Option<String> {
    endpoint.get("zone").and_then(Value::as_str).filter(|zone| !zone.is_empty()).map(str::to_owned)
}

fn for_zone(zone: &str) -> Value {
    json!({ "forZones": [{ "name": zone }] })
}
