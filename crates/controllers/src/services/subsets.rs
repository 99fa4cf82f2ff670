//! The subsets of Endpoints: which addresses have which ports.
//!
//! In: addresses by the list of ports that they have. Out: subsets in which each address and port stands as
//! seldom as can be, at most so many addresses. Pure. Costs as much as there are addresses and ports, sorted.
//!
//! Source: kubernetes v1.36.3 `pkg/api/v1/endpoints/util.go`, `pkg/controller/endpoint`.

use std::collections::BTreeMap;

use forebay_apimachinery::Status;
use serde_json::{Value, json};

use super::ports::{PortList, key_of};
use crate::limits;

/// Addresses of one Endpoints, as kube-controller-manager has it.
pub const ADDRESSES_MAX: usize = 1_000;

/// An address, and whether it is ready.
pub struct Address {
    pub value: Value,
    pub is_ready: bool,
}

/// Packs the addresses of each list of ports.
///
/// # Errors
/// There would be more addresses in all subsets than are looked at.
pub fn pack(mut groups: Vec<(&PortList, Vec<Address>)>) -> Result<Vec<Value>, Status> {
    groups.retain(|(_, addresses)| !addresses.is_empty());
    // A port -> the groups that have it. Without ports it is a subset, too.
    let mut having: BTreeMap<String, (Option<Value>, Vec<usize>)> = BTreeMap::new();
    for (at, (list, _)) in groups.iter().enumerate() {
        for port in &list.ports {
            let port = without_empty_name(port);
            having.entry(port.to_string()).or_insert_with(|| (Some(port), Vec::new())).1.push(at);
        }
        if list.ports.is_empty() {
            having.entry(String::new()).or_default().1.push(at);
        }
    }
    // groups -> the ports that exactly these have
    let mut packed: BTreeMap<Vec<usize>, Vec<Value>> = BTreeMap::new();
    for (port, groups) in having.into_values() {
        packed.entry(groups).or_default().extend(port);
    }
    let count = packed.keys().flatten().map(|at| groups[*at].1.len()).sum::<usize>();
    if count > limits::ENDPOINT_ADDRESSES_MAX {
        return Err(Status::internal("its pods have too many ports by names of their own"));
    }
    let mut subsets = Vec::new();
    for (of, ports) in packed {
        let all = of.iter().flat_map(|at| &groups[*at].1);
        let (ready, not_ready): (Vec<&Address>, Vec<&Address>) = all.partition(|address| address.is_ready);
        let mut subset = json!({});
        for (member, addresses) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
            if !addresses.is_empty() {
                subset[member] = sorted(addresses.into_iter().map(|address| address.value.clone()).collect());
            }
        }
        if !ports.is_empty() {
            subset["ports"] = Value::Array(ports);
        }
        subsets.push(subset);
    }
    Ok(subsets)
}

/// Subsets that somebody else wrote, so that each address and port stands as seldom as can be; of an address
/// that is ready here and is not there, the latter holds.
///
/// Ports and addresses, those that are ready first. Subsets of very many ports and addresses stay as they
/// are.
pub fn repack(subsets: &Value) -> Vec<(Vec<Value>, Vec<Address>)> {
    let all = || subsets.as_array().into_iter().flatten();
    let size = all().map(|subset| length(subset, "ports").max(1) * addresses(subset).count()).sum::<usize>();
    if size > limits::ENDPOINT_ADDRESSES_MAX {
        let as_it_is = |subset: &Value| {
            let addresses =
                addresses(subset).map(|(value, is_ready)| Address { value: value.clone(), is_ready });
            (subset["ports"].as_array().cloned().unwrap_or_default(), addresses.collect())
        };
        return all().map(as_it_is).collect();
    }
    // By what makes it that one.
    let mut known: BTreeMap<(&str, &str), &Value> = BTreeMap::new();
    // A port -> who has it, and whether ready there. Without ports it is a subset, too.
    type Having<'v> = (Option<&'v Value>, BTreeMap<(&'v str, &'v str), bool>);
    let mut having: BTreeMap<String, Having<'_>> = BTreeMap::new();
    for subset in all() {
        let ports = subset["ports"].as_array().filter(|ports| !ports.is_empty());
        let ports: Vec<Option<&Value>> =
            ports.map_or_else(|| vec![None], |ports| ports.iter().map(Some).collect());
        for (address, is_ready) in addresses(subset) {
            let key = (
                address["ip"].as_str().unwrap_or_default(),
                address["targetRef"]["uid"].as_str().unwrap_or_default(),
            );
            known.entry(key).or_insert(address);
            for port in &ports {
                let text = port.map_or_else(String::new, |port| key_of(std::slice::from_ref(port)));
                let (_, addresses) = having.entry(text).or_insert_with(|| (*port, BTreeMap::new()));
                addresses.entry(key).and_modify(|known| *known &= is_ready).or_insert(is_ready);
            }
        }
    }
    let mut packed: BTreeMap<BTreeMap<(&str, &str), bool>, Vec<Value>> = BTreeMap::new();
    for (port, addresses) in having.into_values() {
        packed.entry(addresses).or_default().extend(port.cloned());
    }
    let subset = |(of, ports): (BTreeMap<(&str, &str), bool>, Vec<Value>)| {
        let address = |(key, is_ready): (&(&str, &str), &bool)| {
            known.get(key).map(|value| Address { value: (*value).clone(), is_ready: *is_ready })
        };
        let mut addresses: Vec<Address> = of.iter().filter_map(address).collect();
        addresses.sort_by_key(|address| !address.is_ready);
        (ports, addresses)
    };
    packed.into_iter().map(subset).collect()
}

/// The addresses of a subset, and whether they are ready.
fn addresses(subset: &Value) -> impl Iterator<Item = (&Value, bool)> {
    let list = |member: &str| subset[member].as_array().into_iter().flatten();
    list("addresses")
        .map(|address| (address, true))
        .chain(list("notReadyAddresses").map(|address| (address, false)))
}

fn length(subset: &Value, member: &str) -> usize {
    subset[member].as_array().map_or(0, Vec::len)
}

/// Takes away what is too much: of those that are not ready first, of each subset as many in a hundred.
/// Whether it was too much.
pub fn truncate(subsets: &mut [Value]) -> bool {
    let sum = |member: &str| subsets.iter().map(|subset| length(subset, member)).sum::<usize>();
    let (ready, not_ready) = (sum("addresses"), sum("notReadyAddresses"));
    if ready + not_ready <= ADDRESSES_MAX {
        return false;
    }
    let (member, all, room) = match ready > ADDRESSES_MAX {
        true => ("addresses", ready, ADDRESSES_MAX),
        false => ("notReadyAddresses", not_ready, ADDRESSES_MAX - ready),
    };
    let mut left = room;
    for subset in subsets {
        let share = (length(subset, member) * room).div_ceil(all).min(left);
        if let Some(addresses) = subset[member].as_array_mut() {
            addresses.truncate(share);
            left -= addresses.len();
        }
        let subset = subset.as_object_mut();
        if let Some(subset) = subset {
            if member == "addresses" {
                subset.remove("notReadyAddresses");
            }
            subset.retain(|_, list| list.as_array().is_none_or(|list| !list.is_empty()));
        }
    }
    true
}

/// Whether subsets are the same, in whichever order they and their ports stand.
pub fn are_same(one: &Value, two: &Value) -> bool {
    canonical(one) == canonical(two)
}

fn canonical(subsets: &Value) -> Vec<String> {
    let subset = |subset: &Value| {
        let list = |member: &str| {
            let all = subset[member].as_array().into_iter().flatten().cloned();
            let mut texts: Vec<String> = all.map(|item| without_revision(item).to_string()).collect();
            texts.sort_unstable();
            texts
        };
        json!([list("addresses"), list("notReadyAddresses"), list("ports")]).to_string()
    };
    let mut all: Vec<String> = subsets.as_array().into_iter().flatten().map(subset).collect();
    all.sort_unstable();
    all
}

fn without_revision(mut item: Value) -> Value {
    if let Some(target) = item.get_mut("targetRef").and_then(Value::as_object_mut) {
        target.remove("resourceVersion");
    }
    item
}

/// By address, then by the pod that has it.
fn sorted(mut addresses: Vec<Value>) -> Value {
    let by = |address: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&address["ip"]), text(&address["targetRef"]["uid"]))
    };
    addresses.sort_by_cached_key(by);
    Value::Array(addresses)
}

fn without_empty_name(port: &Value) -> Value {
    let mut port = port.clone();
    if let Some(members) =
        port.as_object_mut().filter(|members| members.get("name").is_some_and(|name| name == ""))
    {
        members.remove("name");
    }
    port
}
