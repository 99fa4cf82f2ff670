//! Where a service is found: at its address, or at the endpoints behind it.
//!
//! In: a service and a port of it. Out: addresses. Never: asks any of them.
//!
//! Source: apiserver v0.36.3 `pkg/util/proxy/proxy.go`.

use std::sync::Arc;

use forebay_object::Object;
use serde_json::Value;

use crate::context::Context;
use crate::limits::ENDPOINTS_TRIED_MAX;

const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A service, as far as it says where it is.
pub(crate) struct Found {
    pub(crate) address: Box<str>,
    /// The name of its port.
    port: String,
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
        let text = |name: &str| spec[name].as_str().unwrap_or_default();
        let (sort, address) = (text("type"), text("clusterIP"));
        match (sort, address) {
            ("ClusterIP", "None") => return Err("cannot route to service with ClusterIP \"None\"".to_owned()),
            ("ExternalName", _) => {
                return Ok(Found { address: at(text("externalName"), port), port: String::new() });
            }
            ("ClusterIP" | "LoadBalancer" | "NodePort", _) => {}
            (other, _) => return Err(format!("unsupported service type {other:?}")),
        }
        let mut ports = spec["ports"].as_array().into_iter().flatten();
        // Once: for a call.
        let known = ports.find(|known| known["port"].as_u64() == Some(port.into()));
        let known = known.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        let name = known["name"].as_str().unwrap_or_default();
        Ok(Found { address: at(address, port), port: name.to_owned() })
    }

    /// The endpoints that are ready, some of them.
    pub(crate) fn endpoints(&self, context: &Context, namespace: &str, service: &str) -> Vec<Box<str>> {
        let catalog = context.catalog();
        let Some(served) = catalog.resource("discovery.k8s.io", "v1", "endpointslices") else {
            return Vec::new();
        };
        let Some(store) = &served.store else { return Vec::new() };
        let Ok(snapshot) = store.cacher.snapshot() else { return Vec::new() };
        let reach = store.reach(Some(namespace), None);
        let slices = snapshot.range(&reach, None).filter(|slice| slice.label(SERVICE_NAME) == Some(service));
        let ready = slices.flat_map(|slice: &Arc<Object>| {
            let slice = served.to_value(slice).unwrap_or_default();
            self.ready(&slice)
        });
        ready.take(ENDPOINTS_TRIED_MAX).collect()
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
        addresses.take(ENDPOINTS_TRIED_MAX).map(|address| at(address, port)).collect()
    }
}

/// As a URL has it.
fn at(address: &str, port: u16) -> Box<str> {
    match address.contains(':') {
        true => format!("[{address}]:{port}").into(),
        false => format!("{address}:{port}").into(),
    }
}
