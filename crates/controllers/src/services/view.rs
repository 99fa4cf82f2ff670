//! What is looked at in services and pods.
//!
//! In: their JSON. Out: [`Service`], [`SelectedPod`]. Never: a field that no endpoint comes of.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use forebay_object::Object;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The time of an object, in seconds since 1970.
pub type Seconds = i64;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    pub metadata: ServiceMeta,
    pub spec: ServiceSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceMeta {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub creation_timestamp: Option<String>,
    pub deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_none")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(deserialize_with = "or_none")]
    pub selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_none")]
    pub ports: Vec<ServicePort>,
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    #[serde(deserialize_with = "or_none")]
    pub ip_families: Vec<String>,
    pub publish_not_ready_addresses: bool,
    pub traffic_distribution: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    pub name: String,
    pub protocol: String,
    pub app_protocol: Option<String>,
    pub target_port: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SelectedPod {
    pub metadata: PodMeta,
    pub spec: PodSpec,
    pub status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMeta {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub deletion_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: String,
    pub hostname: String,
    pub subdomain: String,
    #[serde(deserialize_with = "or_none")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "or_none")]
    pub init_containers: Vec<Container>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    pub restart_policy: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub ports: Vec<ContainerPort>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    pub name: String,
    pub container_port: i64,
    pub protocol: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    pub phase: String,
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    #[serde(rename = "podIPs", deserialize_with = "or_none")]
    pub pod_ips: Vec<PodIp>,
    #[serde(deserialize_with = "or_none")]
    pub conditions: Vec<PodCondition>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodIp {
    pub ip: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub last_transition_time: Option<String>,
}

impl Service {
    pub fn of(object: &Object) -> Service {
        read(object)
    }

    /// Whether pods are looked for: others lead to what somebody else writes.
    pub fn selects(&self) -> bool {
        self.spec.kind != "ExternalName" && !self.spec.selector.is_empty()
    }

    pub fn is_headless(&self) -> bool {
        self.spec.cluster_ip.is_empty() || self.spec.cluster_ip == "None"
    }

    /// Zero where it does not say.
    pub fn created(&self) -> Seconds {
        self.metadata.creation_timestamp.as_deref().map_or(0, seconds)
    }
}

impl SelectedPod {
    pub fn of(object: &Object) -> SelectedPod {
        read(object)
    }

    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    pub fn is_ready(&self) -> bool {
        self.readiness().is_some_and(|condition| condition.status == "True")
    }

    /// When it became what its readiness is; zero where that is not said.
    pub fn ready_since(&self) -> Seconds {
        let time = self.readiness().and_then(|condition| condition.last_transition_time.as_deref());
        time.map_or(0, seconds)
    }

    fn readiness(&self) -> Option<&PodCondition> {
        // Once: for the whole pod.
        self.status.conditions.iter().find(|condition| condition.kind == "Ready")
    }

    /// Whether it can be reached at all: it has not ended, and has an address.
    pub fn is_reachable(&self) -> bool {
        let has_ended = matches!(self.status.phase.as_str(), "Failed" | "Succeeded");
        !(has_ended || self.status.pod_ip.is_empty() && self.status.pod_ips.is_empty())
    }

    /// Its addresses of a family, as they are written by who writes them well.
    pub fn addresses(&self, family: AddressFamily) -> impl Iterator<Item = String> {
        let all = self.status.pod_ips.iter().filter_map(|address| parsed(&address.ip));
        all.filter(move |address| AddressFamily::of(*address) == family).map(|address| address.to_string())
    }

    /// Its name within the domain of `service`, where it has one there.
    pub fn hostname_in(&self, service: &Service) -> Option<&str> {
        let has_one = !self.spec.hostname.is_empty() && self.spec.subdomain == service.metadata.name;
        has_one.then_some(self.spec.hostname.as_str())
    }

    /// Whether no endpoint is another for it.
    pub fn leads_the_same(&self, other: &SelectedPod) -> bool {
        let said =
            |pod: &SelectedPod| (pod.is_deleting(), pod.is_ready(), pod.is_reachable(), pod.ready_since());
        said(self) == said(other)
            && self.status.pod_ips == other.status.pod_ips
            && self.spec.hostname == other.spec.hostname
            && self.spec.subdomain == other.spec.subdomain
            && self.spec.node_name == other.spec.node_name
    }
}

/// A family of addresses, by the names that Services and EndpointSlices have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressFamily {
    IPv4,
    IPv6,
}

impl AddressFamily {
    pub const ALL: [AddressFamily; 2] = [AddressFamily::IPv4, AddressFamily::IPv6];

    pub fn name(self) -> &'static str {
        match self {
            AddressFamily::IPv4 => "IPv4",
            AddressFamily::IPv6 => "IPv6",
        }
    }

    pub fn of(address: IpAddr) -> AddressFamily {
        if address.is_ipv4() { AddressFamily::IPv4 } else { AddressFamily::IPv6 }
    }

    /// That of an address in text; of what is none, the older.
    pub fn of_text(address: &str) -> AddressFamily {
        parsed(address).map_or(AddressFamily::IPv4, AddressFamily::of)
    }

    /// Those of the endpoints of a service.
    pub fn of_service(service: &Service) -> Vec<AddressFamily> {
        let spec = &service.spec;
        let said: Vec<AddressFamily> = AddressFamily::ALL
            .into_iter()
            .filter(|family| spec.ip_families.iter().any(|said| said == family.name()))
            .collect();
        match (said.is_empty(), service.is_headless()) {
            (false, _) => said,
            (true, true) => AddressFamily::ALL.to_vec(),
            (true, false) => vec![AddressFamily::of_text(&spec.cluster_ip)],
        }
    }
}

/// An address as Go reads it: leading zeros are let through, and what is an IPv4 address within the other
/// family is one.
pub fn parsed(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let address: Ipv6Addr = text.parse().ok()?;
        return Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4));
    }
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

/// Of what is no time, zero.
pub fn seconds(time: &str) -> Seconds {
    time.parse::<jiff::Timestamp>().map_or(0, |time| time.as_second())
}

/// A stored object was checked when it was written; one that cannot be read says nothing.
pub fn read<T: Default + for<'de> Deserialize<'de>>(object: &Object) -> T {
    serde_json::from_slice(&object.untyped_json()).unwrap_or_else(|error| {
        tracing::warn!(key = %object.key(), %error, "unreadable");
        T::default()
    })
}

/// `null` is none.
fn or_none<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
