//! What is said of the ports of a pod's containers together.
//!
//! In: a pod's spec. Out: warnings in kube-apiserver's words. Never: what is wrong with one port.
//!
//! Source: kubernetes v1.36.3 `pkg/api/pod`.

use std::collections::HashMap;

use super::warnings::each_container;
use crate::strategy::field::Path;
use crate::strategy::value::{Members, int, objects, text};

struct Port {
    at: String,
    host_ip: String,
    host_port: i64,
}

/// Ports that are there twice, and names that are.
pub fn warn(spec: &Members, at: &Path<'_>, out: &mut Vec<String>) {
    let mut known: HashMap<String, Vec<Port>> = HashMap::new();
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
            for other in others.iter() {
                out.extend(
                    clash(&host_ip, host_port, other).map(|how| format!("{at}: {how} with {}", other.at)),
                );
            }
            others.push(Port { at, host_ip, host_port });
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
fn clash(host_ip: &str, host_port: i64, other: &Port) -> Option<&'static str> {
    if host_ip == other.host_ip && host_port == other.host_port {
        Some("duplicate port definition")
    } else if host_port == 0 || other.host_port == 0 {
        Some("overlapping port definition")
    } else if host_port == other.host_port && host_ip.is_empty() != other.host_ip.is_empty() {
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
