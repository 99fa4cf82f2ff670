//! Where a service is found: at its address, or at the endpoints behind it.
//!
//! In: a service and a port of it. Out: addresses. Never: asks any of them.
//!
//! Source: apiserver v0.36.3 `pkg/util/proxy/proxy.go`.

use std::sync::Arc;

use forebay_object::Object;
use serde_json::Value;

use crate::config::ServiceRouting;
use crate::context::Context;
use crate::limits::ENDPOINTS_TRIED_MAX;

const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A service, as far as it says where it is.
pub(crate) struct Found {
    namespace: Box<str>,
    name: Box<str>,
    /// Its own; none where it is only to be found by its endpoints.
    address: Option<Box<str>>,
    /// The name of its port.
    port: String,
    /// Which addresses it has first: `IPv4`, `IPv6`.
    family: String,
}

impl Found {
    /// # Errors
    /// Why it is nowhere, in upstream's words.
    pub(crate) fn of(context: &Context, namespace: &str, name: &str, port: u16) -> Result<Found, String> {
        let missing = || format!("service {name:?} not found");
        let catalog = context.catalog();
        let served = catalog.resource("", "v1", "services").ok_or_else(missing)?;
        let store = served.stored().map_err(|status| status.message)?;
        let cached = store.cached(&store.key(namespace, name)).ok_or_else(missing)?;
        let service = served.to_value(&cached.object).map_err(|status| status.message)?;
        let spec = &service["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (sort, address) = (text(&spec["type"]), text(&spec["clusterIP"]));
        let mut found = Found {
            namespace: namespace.into(),
            name: name.into(),
            address: None,
            port: String::new(),
            family: text(&spec["ipFamilies"][0]),
        };
        let is_by_address = context.config.services.routing == ServiceRouting::ClusterAddress;
        match (&*sort, &*address) {
            ("ClusterIP", "None") if is_by_address => {
                return Err("cannot route to service with ClusterIP \"None\"".to_owned());
            }
            ("ExternalName", _) if is_by_address => {
                found.address = Some(at(&text(&spec["externalName"]), port));
                return Ok(found);
            }
            ("ClusterIP" | "LoadBalancer" | "NodePort", _) => {}
            (other, _) => return Err(format!("unsupported service type {other:?}")),
        }
        let mut ports = spec["ports"].as_array().into_iter().flatten();
        // Once: for a call.
        let known = ports.find(|known| known["port"].as_u64() == Some(port.into()));
        let known = known.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        found.port = text(&known["name"]);
        found.address = is_by_address.then(|| at(&address, port));
        Ok(found)
    }

    /// Where what is sent to it goes first.
    ///
    /// # Errors
    /// That none of its endpoints is ready.
    pub(crate) fn address(&self, context: &Context) -> Result<Box<str>, String> {
        let own = self.address.clone().or_else(|| self.endpoints(context).into_iter().next());
        own.ok_or_else(|| format!("no endpoints available for service {:?}", self.name))
    }

    /// The endpoints that are ready, some of them, from any of them on: those of its first family come first.
    pub(crate) fn endpoints(&self, context: &Context) -> Vec<Box<str>> {
        let catalog = context.catalog();
        let Some(served) = catalog.resource("discovery.k8s.io", "v1", "endpointslices") else {
            return Vec::new();
        };
        let Some(store) = &served.store else { return Vec::new() };
        let Ok(snapshot) = store.cacher.snapshot() else { return Vec::new() };
        let reach = store.reach(Some(&self.namespace), None);
        let is_own = |slice: &&Arc<Object>| slice.label(SERVICE_NAME) == Some(&*self.name);
        let mut slices: Vec<&Arc<Object>> = snapshot.range(&reach, None).filter(is_own).collect();
        rotate(&mut slices, context);
        let (mut first, mut others) = (Vec::new(), Vec::new());
        for slice in slices {
            let slice = served.to_value(slice).unwrap_or_default();
            let is_first = self.family.is_empty() || slice["addressType"] == *self.family;
            let mut ready = self.ready(&slice);
            rotate(&mut ready, context);
            if is_first { &mut first } else { &mut others }.append(&mut ready);
            if first.len() >= ENDPOINTS_TRIED_MAX {
                break;
            }
        }
        first.append(&mut others);
        first.truncate(ENDPOINTS_TRIED_MAX);
        first
    }

    fn ready(&self, slice: &Value) -> Vec<Box<str>> {
        let mut ports = slice["ports"].as_array().into_iter().flatten();
        // Once: for a slice.
        let port = ports.find(|port| port["name"].as_str().unwrap_or_default() == self.port);
        let port = port.and_then(|port| u16::try_from(port["port"].as_u64()?).ok());
        let Some(port) = port else { return Vec::new() };
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != Value::Bool(false));
        let addresses = ready.filter_map(|endpoint| endpoint["addresses"][0].as_str());
        addresses.map(|address| at(address, port)).collect()
    }
}

/// Lets any of them be the first, so that no endpoint has all the work.
fn rotate<T>(all: &mut [T], context: &Context) {
    if all.len() > 1 {
        let by = context.random.below(all.len() as u64);
        all.rotate_left(by as usize);
    }
}

/// As a URL has it.
fn at(address: &str, port: u16) -> Box<str> {
    match address.contains(':') {
        true => format!("[{address}]:{port}").into(),
        false => format!("{address}:{port}").into(),
    }
}
