//! Whether the server behind an APIService is there.
//!
//! In: what the APIService says, services and endpoints as this server has them, a route. Out: a condition,
//! and what the server answered. Never: writes.
//!
//! Source: kube-aggregator v0.36.3 `controllers/status/remote/remote_available_controller.go`.

use forebay_apimachinery::{Reason, Status};
use forebay_catalog::Target;
use forebay_documents::discovery::Extension;
use forebay_proxy::{ProxyRoute, ServiceReference};
use forebay_registry::Registry;
use serde_json::Value;

use crate::condition::Condition;
use crate::documents::{self, Document};
use crate::limits::{ATTEMPTS_MAX, ATTEMPTS_WAIT};
use crate::registered::Registered;

const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What was found out.
pub struct Looked {
    pub condition: Condition,
    /// What it says of itself, if it was asked; that it is stale, if it could not be.
    pub extension: Option<Extension>,
}

/// Looks whether it is there, and asks what it serves.
///
/// - `wanted`: what is told of it once it has been asked; `None` where it need not be asked.
pub async fn look(
    registry: &Registry,
    registered: &Registered,
    route: &ProxyRoute,
    wanted: Option<Extension>,
) -> Looked {
    let stale = |extension: Extension| Extension {
        resources: Default::default(),
        is_stale: true,
        openapi_url: None,
        openapi_v2: None,
        ..extension
    };
    let answered = match of_service(registry, &registered.service).await {
        Ok(()) => of_server(registered, route, registry).await,
        Err(condition) => Err(condition),
    };
    let document = match answered {
        Ok(document) => document,
        Err(condition) => {
            route.close_idle();
            return Looked { condition, extension: wanted.map(stale) };
        }
    };
    let extension = match wanted {
        None => None,
        Some(wanted) => match documents::read(wanted.clone(), route, &document, registry.clock()).await {
            Ok(extension) => Some(extension),
            Err(why) => {
                let (group, version) = (&*registered.group, &*registered.version);
                tracing::warn!(group, version, why, "what another server serves cannot be told");
                Some(stale(wanted))
            }
        },
    };
    Looked { condition: Condition::passed(), extension }
}

/// # Errors
/// Its service is not there, or has nobody behind it.
async fn of_service(registry: &Registry, of: &ServiceReference) -> Result<(), Condition> {
    let ServiceReference { namespace, name, port } = of;
    let unknown = |reason, status: Status| {
        let why = status.message;
        Condition::unknown(reason, format!("service/{name} in {namespace:?} cannot be checked due to: {why}"))
    };
    let service = service(registry, of).await.map_err(|status| unknown("ServiceAccessError", status))?;
    let Some(service) = service else {
        let message = format!("service/{name} in {namespace:?} is not present");
        return Err(Condition::failed("ServiceNotFound", message));
    };
    if service["spec"]["type"] != "ClusterIP" {
        return Ok(());
    }
    let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
    // Once: for a look.
    let Some(found) = ports.find(|known| known["port"].as_u64() == Some((*port).into())) else {
        let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
        return Err(Condition::failed("ServicePortError", message));
    };
    let port_name = found["name"].as_str().unwrap_or_default();
    let slices = slices(registry, of).await.map_err(|status| unknown("EndpointsAccessError", status))?;
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return Err(Condition::failed("EndpointsNotFound", message));
    }
    if !slices.iter().any(|slice| leads_somewhere(slice, port_name)) {
        let message = format!(
            "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port_name:?}"
        );
        return Err(Condition::failed("MissingEndpoints", message));
    }
    Ok(())
}

async fn service(registry: &Registry, of: &ServiceReference) -> Result<Option<Value>, Status> {
    let served = registry.catalog().resource("", "v1", "services").cloned();
    let served = served.ok_or_else(|| Status::internal("services are not served"))?;
    let (namespace, name) = (Some(of.namespace.to_string()), Some(of.name.to_string()));
    match registry.get(&Target::of_server(served.clone(), namespace, name), "0").await {
        Ok(object) => served.to_value(&object).map(Some),
        Err(status) if status.reason == Reason::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

async fn slices(registry: &Registry, of: &ServiceReference) -> Result<Vec<Value>, Status> {
    let served = registry.catalog().resource("discovery.k8s.io", "v1", "endpointslices").cloned();
    let served = served.ok_or_else(|| Status::internal("endpointslices are not served"))?;
    let target = Target::of_server(served.clone(), Some(of.namespace.to_string()), None);
    let objects = registry.objects(&target).await?;
    let own = objects.iter().filter(|slice| slice.label(SERVICE_NAME) == Some(&*of.name));
    own.map(|slice| served.to_value(slice)).collect()
}

fn leads_somewhere(slice: &Value, port_name: &str) -> bool {
    let mut endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let mut ports = slice["ports"].as_array().into_iter().flatten();
    let is_ready = |endpoint: &Value| endpoint["conditions"]["ready"] != false;
    // A name that was not given was stored as one that is empty.
    let is_it = |port: &Value| port["name"].as_str() == Some(port_name) && !port["port"].is_null();
    endpoints.any(is_ready) && ports.any(is_it)
}

/// # Errors
/// It does not answer, or not as a server of this version.
async fn of_server(
    registered: &Registered,
    route: &ProxyRoute,
    registry: &Registry,
) -> Result<Document, Condition> {
    let failed = |message| Condition::failed("FailedDiscoveryCheck", message);
    let (clock, path) = (registry.clock(), registered.path());
    let until = clock.now() + ATTEMPTS_WAIT;
    let mut why = String::new();
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 0 && clock.now() >= until {
            break;
        }
        let url = format!("https://{}{path}", route.address().map_err(failed)?);
        why = match documents::of_version(route, &path, clock).await {
            Ok(document) if document.code.is_success() => return Ok(document),
            Ok(document) => format!("bad status from {url}: {}", document.code.as_u16()),
            Err(why) => format!("Get {url:?}: {why}"),
        };
        why = format!("failing or missing response from {url}: {why}");
        route.close_idle();
    }
    Err(failed(why))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_slice_leads_somewhere_with_a_ready_endpoint_and_the_port() {
        let slice = |ready: Value, port: &str| {
            json!({
                "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": ready } }],
                "ports": [{ "name": port, "port": 443 }],
            })
        };
        for (slice, want) in [
            (slice(json!(true), "https"), true),
            (slice(Value::Null, "https"), true),
            (slice(json!(false), "https"), false),
            (slice(json!(true), "http"), false),
            (json!({ "ports": [{ "name": "https", "port": 443 }] }), false),
        ] {
            assert_eq!(leads_somewhere(&slice, "https"), want, "{slice}");
        }
    }
}
