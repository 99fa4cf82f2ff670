//! Whether the server behind an APIService is there.
//!
//! In: what the APIService says, services and endpoints as this server has them, a route. Out: a condition.
//! Never: writes; reads what the server says but for its code.
//!
//! Source: kube-aggregator v0.36.3 `controllers/status/remote/remote_available_controller.go`.

use std::sync::atomic::{AtomicBool, Ordering};

use forebay_apimachinery::{Reason, Status};
use forebay_catalog::Target;
use forebay_proxy::{ProxyRoute, ServiceReference};
use forebay_registry::Registry;
use forebay_rt::Clock;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use crate::condition::Condition;
use crate::documents;
use crate::limits::{ATTEMPT_EVERY, ATTEMPTS_MAX};
use crate::registered::Registered;

const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Looks whether it is there. What it serves has no part in that.
pub async fn look(registry: &Registry, registered: &Registered, route: &ProxyRoute) -> Condition {
    let looked = match of_service(registry, &registered.service).await {
        Ok(()) => of_server(registered, route, registry.clock()).await,
        Err(condition) => Err(condition),
    };
    match looked {
        Ok(()) => Condition::passed(),
        Err(condition) => {
            route.close_idle();
            condition
        }
    }
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
async fn of_server(registered: &Registered, route: &ProxyRoute, clock: &Clock) -> Result<(), Condition> {
    let (path, is_again) = (registered.path(), AtomicBool::new(false));
    let ask = || {
        // Connections that wait may lead to whoever was there before.
        if is_again.swap(true, Ordering::Relaxed) {
            route.close_idle();
        }
        asked_once(route, &path, clock)
    };
    any_of(ask, clock).await.map_err(|why| Condition::failed("FailedDiscoveryCheck", why))
}

async fn asked_once(route: &ProxyRoute, path: &str, clock: &Clock) -> Result<(), String> {
    let url = format!("https://{}{path}", route.address()?);
    let why = match documents::code(route, path, clock).await {
        Ok(code) if code.is_success() => return Ok(()),
        Ok(code) => format!("bad status from {url}: {}", code.as_u16()),
        Err(why) => format!("Get {url:?}: {why}"),
    };
    Err(format!("failing or missing response from {url}: {why}"))
}

/// Good as soon as one of several attempts is: the next begins when one has failed, or has been going on for
/// a while.
///
/// # Errors
/// What the last of them says.
async fn any_of<F>(ask: impl Fn() -> F, clock: &Clock) -> Result<(), String>
where
    F: Future<Output = Result<(), String>>,
{
    let (mut going, mut begun, mut why) = (FuturesUnordered::new(), 0, String::new());
    loop {
        if begun < ATTEMPTS_MAX {
            going.push(ask());
            begun += 1;
        }
        tokio::select! {
            biased;
            answered = going.next() => match answered {
                Some(Ok(())) => return Ok(()),
                Some(Err(failed)) => why = failed,
                None => return Err(why),
            },
            () = clock.sleep(ATTEMPT_EVERY), if begun < ATTEMPTS_MAX => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use forebay_rt::Duration;
    use serde_json::json;

    use super::*;

    /// What attempts that take so many milliseconds and end so come to, after how many milliseconds, and how
    /// many of them there were.
    async fn attempted(each: &[(u64, Result<(), &str>)]) -> (Result<(), String>, u64, usize) {
        let (clock, begun) = (Clock::system(), Cell::new(0));
        let ask = || {
            let (took, ended) = each[begun.replace(begun.get() + 1)];
            let clock = clock.clone();
            async move {
                if took > 0 {
                    clock.sleep(Duration::from_millis(took)).await;
                }
                ended.map_err(str::to_owned)
            }
        };
        let before = clock.now();
        let ended = any_of(ask, &clock).await;
        let took = (clock.now() - before).as_millis() as u64;
        (ended, took, begun.get())
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_out_of_five_is_enough_and_one_that_hangs_is_not_waited_for() {
        const HANGS: (u64, Result<(), &str>) = (5_000, Err("late"));
        let (good, bad) = ((10, Ok(())), (0, Err("refused")));
        let every = ATTEMPT_EVERY.as_millis() as u64;
        for (each, want) in [
            (&[good][..], (Ok(()), 10, 1)),
            (&[HANGS, good][..], (Ok(()), every + 10, 2)),
            (&[bad, bad, HANGS, bad, good][..], (Ok(()), every + 10, 5)),
            (&[bad; 5][..], (Err("refused".to_owned()), 0, 5)),
            (&[HANGS; 5][..], (Err("late".to_owned()), 5_000 + 4 * every, 5)),
        ] {
            assert_eq!(attempted(each).await, want, "{each:?}");
        }
    }

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
