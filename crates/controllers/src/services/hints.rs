//! Which zone or node an endpoint is for, where its service asks that its traffic stay close.
//!
//! In: a service, and the endpoints of a slice. Out: their hints; those by the annotation
//! `service.kubernetes.io/topology-mode` are `topology.rs`'s.
//!
//! Source: k8s.io/endpointslice v0.36.3 `trafficdist`.

use serde_json::{Map, Value, json};

use super::view::Service;

const AUTOMATIC: [&str; 2] =
    ["service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"];

/// How close traffic is to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closeness {
    Anywhere,
    Zone,
    Node,
    /// That is left to the server.
    Automatic,
}

impl Closeness {
    pub fn of(service: &Service) -> Closeness {
        let annotations = &service.metadata.annotations;
        let mode = AUTOMATIC.iter().find_map(|name| annotations.get(*name));
        if mode.is_some_and(|mode| mode == "Auto" || mode == "auto") {
            return Closeness::Automatic;
        }
        match service.spec.traffic_distribution.as_deref() {
            Some("PreferClose" | "PreferSameZone") => Closeness::Zone,
            Some("PreferSameNode") => Closeness::Node,
            _ => Closeness::Anywhere,
        }
    }

    /// Gives the endpoints of a slice their hints. Whether one has another than before.
    pub fn hint(self, slice: &mut Value) -> bool {
        let mut is_other = false;
        for endpoint in
            slice["endpoints"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut)
        {
            let is_ready = endpoint.get("conditions").is_some_and(|conditions| conditions["ready"] == true);
            if matches!(self, Closeness::Zone | Closeness::Node) && !is_ready {
                continue;
            }
            let hints = self.hints(endpoint);
            if endpoint.get("hints") != hints.as_ref() {
                is_other = true;
                match hints {
                    Some(hints) => endpoint.insert("hints".to_owned(), hints),
                    None => endpoint.remove("hints"),
                };
            }
        }
        is_other
    }

    fn hints(self, endpoint: &Map<String, Value>) -> Option<Value> {
        let one = |member: &str, is_wanted: bool| endpoint.get(member).filter(|_| is_wanted);
        let mut hints = Map::new();
        if let Some(zone) = one("zone", matches!(self, Closeness::Zone | Closeness::Node)) {
            hints.insert("forZones".to_owned(), json!([{ "name": zone }]));
        }
        if let Some(node) = one("nodeName", self == Closeness::Node) {
            hints.insert("forNodes".to_owned(), json!([{ "name": node }]));
        }
        (!hints.is_empty()).then_some(Value::Object(hints))
    }
}
