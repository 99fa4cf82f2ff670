//! From a request for a part of a pod to the kubelet's answer.
//!
//! In: a request. Out: an answer on its way; or a refusal, the kubelet's or ours. Never: a second kubelet.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/rest/{log,subresources}.go`.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::{Reason, Status};
use forebay_catalog::{Served, Target};
use forebay_proxy::{
    ClientIdentity, ConnectRequest, Connects, Forwarded, ProxiedAnswer, ProxyError, RequestBody, Trust,
    Upstream, forward,
};
use forebay_registry::Registry;
use http::{StatusCode, Uri};
use serde_json::Value;

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

/// The kubelets of this server's nodes.
pub struct Kubelets {
    registry: Registry,
    config: KubeletConfig,
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
    pub fn new(registry: Registry, config: KubeletConfig) -> Kubelets {
        Kubelets { registry, config, known: Mutex::default() }
    }

    async fn answer(
        &self,
        asked: ConnectRequest<'_>,
        body: RequestBody,
    ) -> Result<Option<ProxiedAnswer>, Status> {
        let Some(place) = self.place(&asked).await? else { return Ok(None) };
        let backend = self.backend(&place.host)?;
        let (method, headers) = (asked.method.clone(), asked.headers.clone());
        let forwarded = Forwarded { method, target: place.target, headers };
        let answer = match forward(&backend, &place.address, forwarded, body).await {
            Ok(answer) => answer,
            Err(ProxyError::Full) => {
                let status = Status::new(Reason::TooManyRequests, "too many requests to one kubelet");
                return Err(status.retry_after(1));
            }
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

    /// `None`: no kubelet has it.
    async fn place(&self, asked: &ConnectRequest<'_>) -> Result<Option<Place>, Status> {
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
        let host = place::host(&node, &self.config.address_types)?;
        let address = place::at(host, place::port(&node, self.config.port));
        let target = place::target(asked.subresource, (asked.namespace, asked.name, container), asked.query);
        let target = target.parse().map_err(|why| Status::bad_request(format!("no such path: {why}")))?;
        Ok(Some(Place { host: host.to_owned(), address, target }))
    }

    async fn object(&self, resource: &str, namespace: Option<&str>, name: &str) -> Result<Value, Status> {
        let served: Option<Arc<Served>> = self.registry.catalog().resource("", "v1", resource).cloned();
        let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
        let target = Target::of_server(served.clone(), namespace.map(str::to_owned), Some(name.to_owned()));
        served.to_value(&*self.registry.get(&target, "").await?)
    }

    fn backend(&self, host: &str) -> Result<Upstream, Status> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(backend) = known.get(host) {
            return Ok(backend.clone());
        }
        let clock = self.registry.clock().clone();
        let made = Upstream::new(host, &self.config.trust, Some(&self.config.identity), clock);
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
            _ => Box::pin(std::future::ready(Ok(None))),
        }
    }
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
