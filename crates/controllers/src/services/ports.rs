//! The ports of a service on its pods.
//!
//! In: a service and pods. Out: the lists of ports that there are, each once, and which pod has which. Never:
//! more than so many ports altogether: pods that name their ports otherwise each may be many.

use std::collections::HashMap;

use forebay_apimachinery::Status;
use serde_json::{Value, json};

use super::view::{SelectedPod, Service};
use crate::limits;

/// Ports as EndpointSlices have them, by their text: those that are equal have one text.
#[derive(Debug, Default)]
pub struct PortList {
    pub key: String,
    pub ports: Vec<Value>,
}

/// The lists of ports that pods have.
#[derive(Debug, Default)]
pub struct PortLists {
    pub lists: Vec<PortList>,
    // text -> which of the lists it is
    known: HashMap<String, usize>,
    // Of a service whose ports are numbers: that of every pod.
    of_all: Option<usize>,
    ports: usize,
}

impl PortLists {
    /// Which list `pod` has.
    ///
    /// # Errors
    /// There would be more ports than are looked at.
    pub fn of(&mut self, service: &Service, pod: &SelectedPod) -> Result<usize, Status> {
        if let Some(known) = self.of_all {
            return Ok(known);
        }
        let is_named = service.spec.ports.iter().any(|port| port.target_port.is_string());
        let found = list(service, if is_named { named_ports(pod) } else { HashMap::new() });
        let at = match self.known.get(&found.key) {
            Some(known) => *known,
            None => {
                self.ports += found.ports.len();
                if self.ports > limits::ENDPOINT_PORTS_MAX {
                    return Err(Status::internal("its pods have too many ports by names of their own"));
                }
                self.known.insert(found.key.clone(), self.lists.len());
                self.lists.push(found);
                self.lists.len() - 1
            }
        };
        self.of_all = (!is_named).then_some(at);
        Ok(at)
    }
}

/// The text of some ports, in which what is left out is what it stands for.
pub fn key_of(ports: &[Value]) -> String {
    let mut texts: Vec<String> = ports.iter().map(port_key).collect();
    texts.sort_unstable();
    texts.join("\n")
}

fn port_key(port: &Value) -> String {
    let or = |member: &str, default: &str| port[member].as_str().unwrap_or(default).to_string();
    json!([or("name", ""), port["port"], or("protocol", "TCP"), port["appProtocol"]]).to_string()
}

fn list(service: &Service, named: HashMap<(&str, &str), i64>) -> PortList {
    let number = |port: &super::view::ServicePort| match &port.target_port {
        Value::String(name) => named.get(&(name.as_str(), port.protocol.as_str())).copied(),
        number => Some(number.as_i64().unwrap_or_default()),
    };
    let mut keyed: Vec<(String, Value)> = Vec::new();
    for port in &service.spec.ports {
        let Some(number) = number(port) else { continue };
        let mut found = json!({ "name": port.name, "port": number, "protocol": port.protocol });
        if let Some(protocol) = &port.app_protocol {
            found["appProtocol"] = json!(protocol);
        }
        keyed.push((port_key(&found), found));
    }
    keyed.sort_by(|one, two| one.0.cmp(&two.0));
    let (texts, ports): (Vec<String>, Vec<Value>) = keyed.into_iter().unzip();
    PortList { key: texts.join("\n"), ports }
}

/// The ports of a pod by name and protocol; of two, the first counts.
fn named_ports(pod: &SelectedPod) -> HashMap<(&str, &str), i64> {
    let sidecars = pod.spec.init_containers.iter();
    let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let mut ports = HashMap::new();
    for port in pod.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports) {
        ports.entry((port.name.as_str(), port.protocol.as_str())).or_insert(port.container_port);
    }
    ports
}
