//! From a request for what runs behind a pod, a service or a node to its answer.
//!
//! In: a request. Out: an answer on its way; or a refusal, the other side's or ours. Never: a second kubelet.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/rest/{log,subresources}.go`, `registry/core/{node/rest,service}/proxy.go`.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::{Reason, Status};
use forebay_catalog::{Served, Target};
use forebay_proxy::{
    ClientIdentity, ConnectRequest, Connects, Forwarded, Links, ProxiedAnswer, ProxyError, RequestBody,
    Trust, Upstream, Visits, forward, visit,
};
use forebay_registry::Registry;
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;

use crate::ends::{self, End, Ends};
use crate::limits::{KUBELETS_MAX, REFUSAL_BYTES_MAX};
use crate::place;

/// What asking kubelets takes.
pub struct KubeletConfig {
    pub identity: ClientIdentity,
    pub trust: Trust,
    /// The first that a node has is where it is reached.
    pub address_types: Vec<String>,
    /// Of kubelets whose node does not say.
    pub port: u16,
}

/// The kubelets of this server's nodes, and what runs behind pods and services.
pub struct Kubelets {
    registry: Registry,
    // Where there is none, no kubelet is asked.
    config: Option<KubeletConfig>,
    visits: Visits,
    ends: Ends,
    // By host, since that is what a certificate is for; <= KUBELETS_MAX. Locked for a few lines.
    known: Mutex<HashMap<Box<str>, Upstream>>,
}

/// Where a request goes.
struct Place {
    host: String,
    address: Box<str>,
    target: Uri,
}

impl Kubelets {
    pub fn new(registry: Registry, config: Option<KubeletConfig>) -> Kubelets {
        let visits = Visits::new(registry.clock().clone());
        Kubelets { registry, config, visits, ends: Ends::default(), known: Mutex::default() }
    }

    async fn answer(
        &self,
        asked: ConnectRequest<'_>,
        body: RequestBody,
    ) -> Result<Option<ProxiedAnswer>, Status> {
        let Some(config) = &self.config else { return Ok(None) };
        let Some(place) = self.place(&asked, config).await? else { return Ok(None) };
        let backend = self.backend(&place.host, config)?;
        let (method, target) = (asked.method.clone(), place.target);
        let forwarded = match asked.subresource {
            // This server reads it, and hands on what it reads.
            "log" => Forwarded { method, target, headers: HeaderMap::new(), client: None },
            _ => Forwarded { method, target, headers: asked.headers.clone(), client: asked.client },
        };
        let answer = match forward(&backend, &place.address, forwarded, body).await {
            Ok(answer) => answer,
            Err(ProxyError::Full) => return Err(full()),
            Err(why) => return Err(Status::internal(format!("error dialing backend: {why}"))),
        };
        match answer {
            ProxiedAnswer::Carried(head, carried) if asked.subresource == "log" && !is_well(head.status) => {
                let told = carried.whole(REFUSAL_BYTES_MAX).await.unwrap_or_default();
                Err(refusal(head.status, String::from_utf8_lossy(&told).into_owned()))
            }
            answer => Ok(Some(answer)),
        }
    }

    /// Sends a request on to what runs behind the object.
    async fn visit(
        &self,
        asked: ConnectRequest<'_>,
        body: RequestBody,
    ) -> Result<Option<ProxiedAnswer>, Status> {
        if !ends::METHODS.contains(asked.method) {
            let why = format!("the server does not allow {} on this resource", asked.method);
            return Err(Status::new(Reason::MethodNotAllowed, why));
        }
        let (address, backend, is_encrypted) = match asked.resource {
            "nodes" => {
                let Some(config) = &self.config else { return Ok(None) };
                let (scheme, name, port) = ends::split("node", asked.name)?;
                let node = self.object("nodes", None, name).await?;
                let host = place::host(&node, &config.address_types)?;
                forebay_proxy::only_global(host).await.map_err(Status::bad_request)?;
                let own = place::port(&node, config.port);
                match port.is_empty() || port == own.to_string() {
                    true => (place::at(host, own), self.backend(host, config)?, true),
                    false => self.unknown(&End::new(scheme, host, port))?,
                }
            }
            "services" => self.unknown(&self.ends.of_service(&self.registry, asked).await?)?,
            _ => {
                let (scheme, name, port) = ends::split("pod", asked.name)?;
                let pod = self.object("pods", Some(asked.namespace), name).await?;
                self.unknown(&ends::of_pod(&pod, scheme, port)?)?
            }
        };
        let prefix = ends::prefix(asked.path, asked.rest);
        let is_upgrade = forebay_proxy::asks_for_upgrade(asked.headers).is_some();
        let is_read = matches!(*asked.method, Method::GET | Method::HEAD);
        let query = asked.raw_query.map(|query| format!("?{query}")).unwrap_or_default();
        if asked.rest.is_empty() && !asked.path.ends_with('/') && is_read && !is_upgrade {
            // Links that are relative would lead beside it.
            return Ok(Some(ProxiedAnswer::Moved(format!("{}/{query}", asked.path))));
        }
        let target: Uri = format!("{}{query}", ends::path(asked.path, asked.rest))
            .parse()
            .map_err(|why| Status::bad_request(format!("no such path: {why}")))?;
        // A URL says no port that is its scheme's.
        let usual = if is_encrypted { ":443" } else { ":80" };
        let host = address.strip_suffix(usual).unwrap_or(&address).to_owned();
        let links = Links { prefix: prefix.to_owned(), host, asked_host: asked.host.to_owned() };
        let (method, headers) = (asked.method.clone(), asked.headers.clone());
        let forwarded = Forwarded { method, target, headers, client: asked.client };
        match visit(&backend, &address, forwarded, links, body).await {
            Ok(answer) => Ok(Some(answer)),
            Err(ProxyError::Full) => Err(full()),
            Err(why) if is_upgrade => Err(Status::internal(format!("error dialing backend: {why}"))),
            Err(why) => {
                let why = format!("error trying to reach service: {why}");
                Err(Status::new(Reason::ServiceUnavailable, why))
            }
        }
    }

    /// The way to whoever is there.
    fn unknown(&self, end: &End) -> Result<(Box<str>, Upstream, bool), Status> {
        let backend = self.visits.at(&end.host, end.is_encrypted).map_err(Status::internal)?;
        Ok((end.address(), backend, end.is_encrypted))
    }

    /// `None`: no kubelet has it.
    async fn place(
        &self,
        asked: &ConnectRequest<'_>,
        config: &KubeletConfig,
    ) -> Result<Option<Place>, Status> {
        let pod = self.object("pods", Some(asked.namespace), asked.name).await?;
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if node.is_empty() {
            return Ok(None);
        }
        let container = match asked.subresource {
            "portforward" => None,
            _ => Some(place::container(&pod, asked.query.first("container").unwrap_or_default())?),
        };
        let node = self.object("nodes", None, node).await?;
        if asked.is_websocket && !place::speaks_websocket(&node) {
            let why = "its kubelet does not say that it speaks WebSocket: ask for SPDY/3.1";
            return Err(Status::bad_request(format!("unable to upgrade connection: {why}")));
        }
        let host = place::host(&node, &config.address_types)?;
        let address = place::at(host, place::port(&node, config.port));
        let target = place::target(asked.subresource, (asked.namespace, asked.name, container), asked.query);
        let target = target.parse().map_err(|why| Status::bad_request(format!("no such path: {why}")))?;
        Ok(Some(Place { host: host.to_owned(), address, target }))
    }

    async fn object(&self, resource: &str, namespace: Option<&str>, name: &str) -> Result<Value, Status> {
        object(&self.registry, resource, namespace, name).await
    }

    fn backend(&self, host: &str, config: &KubeletConfig) -> Result<Upstream, Status> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(backend) = known.get(host) {
            return Ok(backend.clone());
        }
        let clock = self.registry.clock().clone();
        let made = Upstream::new(host, &config.trust, Some(&config.identity), clock);
        let made = made.map_err(Status::internal)?;
        if known.len() >= KUBELETS_MAX {
            known.clear();
        }
        known.insert(host.into(), made.clone());
        Ok(made)
    }
}

impl Connects for Kubelets {
    fn connect<'a>(
        &'a self,
        asked: ConnectRequest<'a>,
        body: RequestBody,
    ) -> Pin<Box<dyn Future<Output = Result<Option<ProxiedAnswer>, Status>> + Send + 'a>> {
        match asked.subresource {
            "log" | "exec" | "attach" | "portforward" => Box::pin(self.answer(asked, body)),
            "proxy" => Box::pin(self.visit(asked, body)),
            _ => Box::pin(std::future::ready(Ok(None))),
        }
    }
}

/// An object of the core group as a tree, as it is now.
pub(crate) async fn object(
    registry: &Registry,
    resource: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<Value, Status> {
    let served: Option<Arc<Served>> = registry.catalog().resource("", "v1", resource).cloned();
    let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
    let target = Target::of_server(served.clone(), namespace.map(str::to_owned), Some(name.to_owned()));
    served.to_value(&*registry.get(&target, "").await?)
}

fn full() -> Status {
    Status::new(Reason::TooManyRequests, "too many requests are on their way there").retry_after(1)
}

fn is_well(code: StatusCode) -> bool {
    (StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&code)
}

/// What a kubelet refuses with, as kube-apiserver tells it.
fn refusal(code: StatusCode, told: String) -> Status {
    match code {
        StatusCode::INTERNAL_SERVER_ERROR => Status::internal(told),
        StatusCode::BAD_REQUEST => Status::bad_request(told),
        StatusCode::NOT_FOUND => Status::new(Reason::NotFound, told),
        StatusCode::UNAUTHORIZED => Status::new(Reason::Unauthorized, told),
        StatusCode::FORBIDDEN => Status::new(Reason::Forbidden, told),
        code => Status::internal(format!("the kubelet answered {}: {told}", code.as_u16())),
    }
}
