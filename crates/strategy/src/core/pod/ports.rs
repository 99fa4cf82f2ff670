//! What is said of the ports of a pod's containers together.
//!
//! In: a pod's spec. Out: warnings in kube-apiserver's words. Never: what is wrong with one port.
//!
//! Source: kubernetes v1.36.3 `pkg/api/pod`.

use std::collections::HashMap;

use forebay_apimachinery::steps;

use super::warnings::each_container;
use crate::field::Path;
use crate::limits::PAIRS_MAX;
use crate::value::{Members, int, objects, text};

/// Definitions of one port of a protocol, by what may clash with a later one. Places are those in `all`, in
/// order.
#[derive(Default)]
struct Known {
    // Where each is, and its address and port on the host.
    all: Vec<Port>,
    // Those without a port on the host.
    unbound: Vec<usize>,
    // port on the host -> those that have it with an address
    addressed: HashMap<i64, Vec<usize>>,
    // the same, by address, the empty one among them
    exact: HashMap<(i64, String), Vec<usize>>,
}

struct Port {
    at: String,
    host_ip: String,
    host_port: i64,
}

impl Known {
    /// Those before `port` that it clashes with, in order, but no more than `most`.
    fn clashes(&self, port: &Port, most: usize) -> Vec<(&'static str, &str)> {
        let none = Vec::new();
        let exact = |ip: &str| self.exact.get(&(port.host_port, ip.to_string())).unwrap_or(&none);
        let other_side = match port.host_ip.is_empty() {
            true => self.addressed.get(&port.host_port).unwrap_or(&none),
            false => exact(""),
        };
        let mut places: Vec<usize> = match port.host_port {
            0 => (0..self.all.len().min(most)).collect(),
            _ => [&self.unbound, other_side, exact(&port.host_ip)]
                .into_iter()
                .flat_map(|places| places.iter().take(most))
                .copied()
                .collect(),
        };
        steps::add(1 + places.len() as u64);
        places.sort_unstable();
        let told = places.into_iter().map(|place| &self.all[place]);
        told.filter_map(|other| Some((clash(port, other)?, other.at.as_str()))).take(most).collect()
    }

    fn add(&mut self, port: Port) {
        let place = self.all.len();
        if port.host_port == 0 {
            self.unbound.push(place);
        } else {
            if !port.host_ip.is_empty() {
                self.addressed.entry(port.host_port).or_default().push(place);
            }
            self.exact.entry((port.host_port, port.host_ip.clone())).or_default().push(place);
        }
        self.all.push(port);
    }
}

/// Ports that are there twice, and names that are.
pub fn warn(spec: &Members, at: &Path<'_>, out: &mut Vec<String>) {
    let mut known: HashMap<String, Known> = HashMap::new();
    let mut left = PAIRS_MAX;
    each_container(spec, at, |container, at| {
        let at = at.child("ports");
        for (index, port) in objects(container, "ports").enumerate() {
            let at = at.index(index).to_string();
            let (host_ip, host_port) = (text(port, "hostIP").to_string(), int(port, "hostPort").unwrap_or(0));
            if !host_ip.is_empty() && host_port == 0 {
                out.push(format!("{at}: hostIP set without hostPort: {}", go_fields(port)));
            }
            let key = format!("{}/{}", int(port, "containerPort").unwrap_or(0), text(port, "protocol"));
            let others = known.entry(key).or_default();
            let port = Port { at, host_ip, host_port };
            if left > 0 {
                let clashes = others.clashes(&port, left);
                left -= clashes.len();
                out.extend(
                    clashes.into_iter().map(|(how, other)| format!("{}: {how} with {other}", port.at)),
                );
                others.add(port);
            }
        }
    });
    let mut named: HashMap<String, String> = HashMap::new();
    each_container(spec, at, |container, at| {
        let at = at.child("ports");
        for (index, port) in
            objects(container, "ports").enumerate().filter(|(_, port)| !text(port, "name").is_empty())
        {
            let (at, name) = (at.index(index).to_string(), text(port, "name"));
            match named.get(name) {
                Some(other) => out.push(format!(
                    "{at}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}"
                )),
                None => drop(named.insert(name.to_string(), at)),
            }
        }
    });
}

/// How two definitions of one port get into each other's way.
fn clash(port: &Port, other: &Port) -> Option<&'static str> {
    if port.host_ip == other.host_ip && port.host_port == other.host_port {
        Some("duplicate port definition")
    } else if port.host_port == 0 || other.host_port == 0 {
        Some("overlapping port definition")
    } else if port.host_port == other.host_port && port.host_ip.is_empty() != other.host_ip.is_empty() {
        Some("dangerously ambiguous port definition")
    } else {
        None
    }
}

/// A port as Go prints the struct.
fn go_fields(port: &Members) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text(port, "name"),
        int(port, "hostPort").unwrap_or(0),
        int(port, "containerPort").unwrap_or(0),
        text(port, "protocol"),
        text(port, "hostIP")
    )
}
