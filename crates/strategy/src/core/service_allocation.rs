//! What a Service takes from the pools of addresses and node ports, and the fields that follow from that.
//!
//! In: a Service as a client sent it, the one that it takes the place of, and [`Pools`]. Out: the Service
//! with its families, addresses and ports filled in, or why it cannot have them, in upstream's order and
//! words; what a stored Service holds. Never: IO; says what is taken.
//!
//! All of it comes before the Service is prepared and validated, as upstream has it.
//!
//! Source: kubernetes v1.36.3 `registry/core/service/storage/{alloc,storage}.go`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;

use forebay_apimachinery::seen::Firsts;
use forebay_apimachinery::{Cause, Seen};
use serde_json::{Value, json};

use super::service::{needs_address, needs_health_check};
use super::service_families::{init_families, keeps_its_stacks};
use crate::field::{Causes, Path};
use crate::format::sloppy_ip;
use crate::value::{
    Members, child_made, child_or_empty, int, list, list_mut, objects, objects_mut, take_over, text, texts,
};

/// An address family, as `ipFamilies` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub fn of(address: IpAddr) -> Family {
        if address.to_canonical().is_ipv6() { Family::V6 } else { Family::V4 }
    }

    pub fn parse(name: &str) -> Option<Family> {
        [Family::V4, Family::V6].into_iter().find(|family| family.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    pub fn other(self) -> Family {
        match self {
            Family::V4 => Family::V6,
            Family::V6 => Family::V4,
        }
    }
}

/// What one Service holds and no other one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Allocation {
    Address(IpAddr),
    Port(u16),
}

/// Where addresses and ports come from.
pub trait Pools {
    /// The families that there are addresses of; the first is the default.
    fn families(&self) -> &[Family];
    /// `wanted`, or any free address of `family`.
    fn address(&mut self, wanted: Option<IpAddr>, family: Family) -> Result<IpAddr, Unavailable>;
    /// `wanted`, or any free port.
    fn port(&mut self, wanted: Option<i64>) -> Result<i64, Unavailable>;
}

/// Why a pool gives nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Nobody has looked at what is taken: look, and try again.
    Unseen,
    Full,
    /// In upstream's words.
    Because(String),
}

/// Why a Service gets nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationError {
    /// As [`Unavailable::Unseen`].
    Unseen,
    Invalid(Vec<Cause>),
    /// An internal error to the client.
    Internal(String),
    /// An error that upstream gives no reason for.
    Unknown(String),
}

impl Unavailable {
    fn words(&self) -> Option<&str> {
        match self {
            Unavailable::Unseen => None,
            Unavailable::Full => Some("range is full"),
            Unavailable::Because(why) => Some(why),
        }
    }

    fn or_unseen(&self, refusal: impl FnOnce(&str) -> AllocationError) -> AllocationError {
        self.words().map_or(AllocationError::Unseen, refusal)
    }
}

/// Gives a new Service what it needs.
///
/// # Errors
/// What it cannot have.
pub fn allocate_new(service: &mut Members, pools: &mut dyn Pools) -> Result<(), AllocationError> {
    let name = name_of(service);
    let spec = child_made(service, "spec");
    let address = text(spec, "clusterIP").to_string();
    if !address.is_empty() && list(spec, "clusterIPs").is_empty() {
        spec.insert("clusterIPs".into(), json!([address]));
    }
    init_families(spec, None, pools.families())?;
    give_addresses(&name, spec, pools)?;
    if takes_node_ports(spec) {
        give_new_ports(spec, pools)?;
    }
    if needs_health_check(spec) {
        give_health_check_port(spec, pools)?;
    }
    Ok(())
}

/// Gives a changed Service what it needs and `old` has not.
///
/// # Errors
/// What it cannot have.
pub fn allocate_changed(
    service: &mut Members,
    old: &Members,
    pools: &mut dyn Pools,
) -> Result<(), AllocationError> {
    let name = name_of(service);
    let old = seen(child_or_empty(old, "spec"), pools.families());
    let spec = child_made(service, "spec");
    keep_allocated(spec, &old);
    align_addresses(spec, &old);
    init_families(spec, Some(&old), pools.families())?;
    give_changed_addresses(&name, spec, &old, pools)?;
    if takes_node_ports(spec) {
        give_changed_ports(spec, &old, pools)?;
    }
    if needs_health_check(spec) && !needs_health_check(&old) {
        give_health_check_port(spec, pools)?;
    }
    Ok(())
}

/// What a stored Service holds, each once.
pub fn holdings(service: &Members) -> Vec<Allocation> {
    let spec = child_or_empty(service, "spec");
    let mut items = Vec::new();
    if needs_address(spec) {
        let singular = text(spec, "clusterIP");
        let plural = texts(spec, "clusterIPs");
        let addresses = plural.chain(Some(singular).filter(|_| list(spec, "clusterIPs").is_empty()));
        items.extend(
            addresses.filter_map(sloppy_ip).map(|address| Allocation::Address(address.to_canonical())),
        );
    }
    let mut ports = node_ports(spec);
    ports.extend(int(spec, "healthCheckNodePort").filter(|_| needs_health_check(spec)));
    items.extend(ports.into_iter().filter_map(|port| u16::try_from(port).ok()).map(Allocation::Port));
    items.retain(|item| *item != Allocation::Port(0));
    items.sort();
    items.dedup();
    items
}

fn name_of(service: &Members) -> String {
    text(child_or_empty(service, "metadata"), "name").to_string()
}

/// Whether its node ports are its own.
fn takes_node_ports(spec: &Members) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

/// Whether ports without a node port are given one.
fn fills_node_ports(spec: &Members) -> bool {
    let asked = spec.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool);
    takes_node_ports(spec) && (text(spec, "type") == "NodePort" || asked != Some(false))
}

/// The node ports that are its own.
fn node_ports(spec: &Members) -> Vec<i64> {
    if !takes_node_ports(spec) {
        return Vec::new();
    }
    objects(spec, "ports").filter_map(|port| int(port, "nodePort")).filter(|port| *port != 0).collect()
}

/// A stored spec as readers see it: those from before `clusterIPs` and `ipFamilies` have them, too. Others
/// are not copied.
fn seen<'o>(old: &'o Members, known: &[Family]) -> Cow<'o, Members> {
    let mut old = Cow::Borrowed(old);
    let address = text(&old, "clusterIP").to_string();
    if !address.is_empty() && list(&old, "clusterIPs").is_empty() {
        old.to_mut().insert("clusterIPs".into(), json!([address]));
    }
    if !needs_address(&old) || !list(&old, "ipFamilies").is_empty() {
        return old;
    }
    let default = known.first().copied().unwrap_or(Family::V4);
    let dual = address == "None" && child_or_empty(&old, "selector").is_empty();
    let families: Vec<Family> = match address.as_str() {
        "None" if dual => vec![default, default.other()],
        "None" => vec![default],
        _ => texts(&old, "clusterIPs").filter_map(sloppy_ip).map(Family::of).collect(),
    };
    if !families.is_empty() {
        let policy = if families.len() == 2 { "RequireDualStack" } else { "SingleStack" };
        let names: Vec<&str> = families.iter().map(|family| family.name()).collect();
        let old = old.to_mut();
        old.insert("ipFamilyPolicy".into(), policy.into());
        old.insert("ipFamilies".into(), json!(names));
    }
    old
}

/// What was allocated stays when the client leaves it out.
fn keep_allocated(new: &mut Members, old: &Members) {
    if needs_address(old) && needs_address(new) {
        if text(new, "clusterIP").is_empty() {
            take_over(new, old, "clusterIP");
        }
        if list(new, "clusterIPs").is_empty() {
            take_over(new, old, "clusterIPs");
        }
    }
    if fills_node_ports(old) && fills_node_ports(new) {
        keep_node_ports(new, old);
    }
    if needs_health_check(old) && needs_health_check(new) && int(new, "healthCheckNodePort").unwrap_or(0) == 0
    {
        take_over(new, old, "healthCheckNodePort");
    }
}

/// A port without a node port takes the one that the port of its name had, unless another port has it now.
fn keep_node_ports(new: &mut Members, old: &Members) {
    let now: Seen<i64> = node_ports(new).into_iter().collect();
    // Of a name that is there twice the last counts.
    let before: HashMap<&str, Option<i64>> =
        objects(old, "ports").map(|port| (text(port, "name"), int(port, "nodePort"))).collect();
    for port in objects_mut(new, "ports").filter(|port| int(port, "nodePort").unwrap_or(0) == 0) {
        let allocated = before.get(text(port, "name")).copied().flatten();
        if let Some(number) = allocated.filter(|number| *number != 0 && !now.has(number)) {
            port.insert("nodePort".into(), number.into());
        }
    }
}

/// `clusterIPs` follows `clusterIP` for clients that do not know the former.
fn align_addresses(new: &mut Members, old: &Members) {
    let (address, old_address) = (text(new, "clusterIP").to_string(), text(old, "clusterIP"));
    if address == old_address {
        if list(new, "clusterIPs").is_empty() {
            take_over(new, old, "clusterIPs");
        }
        return;
    }
    if !texts(new, "clusterIPs").eq(texts(old, "clusterIPs")) {
        return;
    }
    if address.is_empty() {
        new.remove("clusterIPs");
    } else {
        new.insert("clusterIPs".into(), json!([address]));
    }
}

/// One address of each of its families; what it names must be free.
fn give_addresses(name: &str, spec: &mut Members, pools: &mut dyn Pools) -> Result<(), AllocationError> {
    if !needs_address(spec) || texts(spec, "clusterIPs").next() == Some("None") {
        return Ok(());
    }
    let families: Vec<Family> = texts(spec, "ipFamilies").filter_map(Family::parse).collect();
    let mut addresses: Vec<String> = texts(spec, "clusterIPs").map(String::from).collect();
    addresses.resize(addresses.len().max(families.len()), String::new());
    for (index, family) in families.into_iter().enumerate() {
        addresses[index] = give_address(name, &addresses, index, family, pools)?;
    }
    spec.insert("clusterIP".into(), addresses.first().cloned().unwrap_or_default().into());
    spec.insert("clusterIPs".into(), json!(addresses));
    Ok(())
}

/// The address at `index`, as it is or, if it is empty, a new one.
fn give_address(
    name: &str,
    addresses: &[String],
    index: usize,
    family: Family,
    pools: &mut dyn Pools,
) -> Result<String, AllocationError> {
    let at = Path::root("spec");
    let at = at.child("clusterIPs");
    let wanted = addresses[index].as_str();
    let invalid = |why: String| {
        let mut causes = Causes::default();
        causes.invalid(&at, &json!(addresses), &why);
        AllocationError::Invalid(causes.into_vec())
    };
    if wanted.is_empty() {
        return match pools.address(None, family) {
            Ok(address) => Ok(address.to_string()),
            Err(full @ Unavailable::Full) => Err(full.or_unseen(|why| {
                AllocationError::Internal(format!(
                    "failed to allocate a serviceIP for Service {name:?}: {why}"
                ))
            })),
            Err(other) => Err(other.or_unseen(|why| invalid(format!("failed to allocate IP: {why}")))),
        };
    }
    let Some(address) = sloppy_ip(wanted) else {
        return Err(AllocationError::Internal(format!("failed to parse service IP {wanted:?}")));
    };
    match pools.address(Some(address.to_canonical()), family) {
        Ok(_) => Ok(wanted.to_string()),
        Err(taken) => Err(taken.or_unseen(|why| invalid(format!("failed to allocate IP {wanted}: {why}")))),
    }
}

fn give_changed_addresses(
    name: &str,
    spec: &mut Members,
    old: &Members,
    pools: &mut dyn Pools,
) -> Result<(), AllocationError> {
    if keeps_its_stacks(spec, old) {
        return Ok(());
    }
    // A Service that needs one and has none is from before there were any to have.
    let had_none = !needs_address(old) || list(old, "clusterIPs").is_empty();
    if had_none && needs_address(spec) {
        return give_addresses(name, spec, pools);
    }
    let headless = texts(old, "clusterIPs").next() == Some("None");
    let stacks = |spec: &Members| list(spec, "ipFamilies").len();
    if headless || !needs_address(spec) || stacks(old) != 1 || stacks(spec) != 2 {
        return Ok(());
    }
    let Some(family) = texts(spec, "ipFamilies").nth(1).and_then(Family::parse) else { return Ok(()) };
    let mut addresses: Vec<String> = texts(spec, "clusterIPs").map(String::from).collect();
    addresses.resize(addresses.len().max(2), String::new());
    addresses[1] = give_address(name, &addresses, 1, family, pools)?;
    spec.insert("clusterIPs".into(), json!(addresses));
    Ok(())
}

/// Ports with one number, of different protocols, share a node port.
fn give_new_ports(spec: &mut Members, pools: &mut dyn Pools) -> Result<(), AllocationError> {
    let fills = fills_node_ports(spec);
    let ports: Vec<(i64, i64)> = objects(spec, "ports")
        .map(|port| (int(port, "port").unwrap_or(0), int(port, "nodePort").unwrap_or(0)))
        .collect();
    // Of each port number, the node port that is asked for first, and the one that it got first.
    let asked: Firsts<i64, i64> = ports.iter().copied().filter(|(_, asked)| *asked != 0).collect();
    let mut given: HashMap<i64, i64> = HashMap::new();
    for (index, (number, node_port)) in ports.iter().copied().enumerate() {
        if node_port == 0 && !fills {
            continue;
        }
        let node_port = match given.get(&number).copied() {
            Some(shared) if node_port == 0 || node_port == shared => shared,
            Some(_) => take_port(index, node_port, pools)?,
            None => {
                let node_port = match asked.get(&number) {
                    Some(asked) => take_port(index, *asked, pools)?,
                    None => take_any_port(pools)?,
                };
                given.insert(number, node_port);
                node_port
            }
        };
        set_node_port(spec, index, node_port);
    }
    Ok(())
}

fn give_changed_ports(
    spec: &mut Members,
    old: &Members,
    pools: &mut dyn Pools,
) -> Result<(), AllocationError> {
    let fills = fills_node_ports(spec);
    let mut own: Seen<i64> = node_ports(old).into_iter().collect();
    let ports: Vec<(String, i64)> = objects(spec, "ports")
        .map(|port| (text(port, "protocol").to_string(), int(port, "nodePort").unwrap_or(0)))
        .collect();
    let mut given: Seen<(&str, i64)> = Seen::default();
    for (index, (protocol, node_port)) in ports.iter().enumerate() {
        let node_port = match *node_port {
            0 if !fills => continue,
            0 => take_any_port(pools)?,
            known if own.has(&known) => known,
            asked => take_port(index, asked, pools)?,
        };
        own.again(node_port);
        if given.again((protocol.as_str(), node_port)) {
            return Err(AllocationError::Unknown(format!("duplicate nodePort: {{{protocol} {node_port}}}")));
        }
        set_node_port(spec, index, node_port);
    }
    Ok(())
}

fn take_port(index: usize, asked: i64, pools: &mut dyn Pools) -> Result<i64, AllocationError> {
    pools.port(Some(asked)).map_err(|taken| {
        taken.or_unseen(|why| {
            let (spec, mut causes) = (Path::root("spec"), Causes::default());
            causes.invalid(&spec.child("ports").index(index).child("nodePort"), asked, why);
            AllocationError::Invalid(causes.into_vec())
        })
    })
}

fn take_any_port(pools: &mut dyn Pools) -> Result<i64, AllocationError> {
    let refused = |why: &str| AllocationError::Internal(format!("failed to allocate a nodePort: {why}"));
    pools.port(None).map_err(|none| none.or_unseen(refused))
}

fn set_node_port(spec: &mut Members, index: usize, node_port: i64) {
    if let Some(port) = list_mut(spec, "ports").get_mut(index).and_then(Value::as_object_mut) {
        port.insert("nodePort".into(), node_port.into());
    }
}

fn give_health_check_port(spec: &mut Members, pools: &mut dyn Pools) -> Result<(), AllocationError> {
    let asked = int(spec, "healthCheckNodePort").filter(|port| *port != 0);
    let refused = |why: &str| {
        AllocationError::Internal(match asked {
            Some(asked) => format!("failed to allocate requested HealthCheck NodePort {asked}: {why}"),
            None => format!("failed to allocate a HealthCheck NodePort 0: {why}"),
        })
    };
    let port = pools.port(asked).map_err(|taken| taken.or_unseen(refused))?;
    spec.insert("healthCheckNodePort".into(), port.into());
    Ok(())
}
