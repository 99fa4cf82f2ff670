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
use forebay_catalog::Target;
use forebay_proxy::{
    ConnectRequest, Connects, Forwarded, Links, ProxiedAnswer, ProxyError, RequestBody, Trust, Upstream,
    Visits, forward, visit,
};
use forebay_registry::Registry;
use http::header::{CONTENT_TYPE, LOCATION, SEC_WEBSOCKET_PROTOCOL};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};

use crate::credentials::KubeletCredentials;
use crate::ends::{self, End, Ends};
use crate::limits::{KUBELETS_MAX, READ_APART_BYTES, REFUSAL_BYTES_MAX};
use crate::log::LogOptions;
use crate::place::{self, NodePlace, PodPlace};
use crate::refusal;

/// What asking kubelets takes.
pub struct KubeletConfig {
    pub credentials: KubeletCredentials,
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
    // Locked for a few lines.
    known: Mutex<Known>,
}

/// Kubelets by host, since that is what a certificate is for; each <= KUBELETS_MAX.
#[derive(Default)]
struct Known {
    verified: HashMap<Box<str>, Upstream>,
    // For those who want nobody to vouch for them.
    unverified: HashMap<Box<str>, Upstream>,
    // Of the credentials that they are known by.
    turn: u64,
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

    /// Asks the kubelet of a pod.
    async fn answer(
        &self,
        asked: ConnectRequest<'_>,
        body: RequestBody,
    ) -> Result<Option<ProxiedAnswer>, Status> {
        let log = match asked.subresource {
            "log" => Some(LogOptions::read(asked.query, asked.name)?),
            _ => None,
        };
        let PodPlace { node: name, container } = self.pod(&asked).await?;
        if name.is_empty() {
            return match log {
                Some(_) => Ok(Some(ProxiedAnswer::Nothing)),
                None => Err(Status::bad_request(format!("pod {} does not have a host assigned", asked.name))),
            };
        }
        let Some(config) = &self.config else { return Ok(None) };
        let node = self.node(&name, config).await.map_err(|status| match status.reason {
            // Upstream says it of what was asked for.
            Reason::NotFound => Status::not_found("", "pods", &name),
            _ => status,
        })?;
        let of = (asked.namespace, asked.name, container.as_deref());
        let target = place::target(asked.subresource, of, asked.query, log.as_ref());
        let target = target.parse().map_err(|why| Status::bad_request(format!("no such path: {why}")))?;
        let place = Place { address: place::at(&node.host, node.port), host: node.host, target };
        match log {
            Some(options) => self.log(config, place, options, &asked).await.map(Some),
            None if asked_for_no_upgrade(&asked) => Err(Status::bad_request("Upgrade request required")),
            None if asked.is_websocket && !node.speaks_websocket && is_to_be_translated(&asked) => {
                let why = "its kubelet does not say that it speaks that over WebSocket: ask for SPDY/3.1";
                Err(Status::bad_request(format!("unable to upgrade connection: {why}")))
            }
            None => self.stream(config, place, asked, body).await.map(Some),
        }
    }

    /// This server reads what is asked for, and hands on what it reads.
    async fn log(
        &self,
        config: &KubeletConfig,
        place: Place,
        options: LogOptions,
        asked: &ConnectRequest<'_>,
    ) -> Result<ProxiedAnswer, Status> {
        let backend = self.backend(&place.host, config, options.skips_verification)?;
        let url = format!("https://{}{}", place.address, place.target);
        let failed = |url: &str, why: &str| Status::new(Reason::Unknown, format!("Get {url:?}: {why}"));
        let (method, target) = (Method::GET, place.target);
        let forwarded =
            Forwarded { method, target, headers: HeaderMap::new(), client: None, user: user(asked) };
        let body = RequestBody::Right(Default::default());
        let (head, carried) = match forward(&backend, &place.address, forwarded, body).await {
            Ok(ProxiedAnswer::Carried(head, carried)) => (head, carried),
            Ok(answer) => return Ok(answer),
            Err(ProxyError::Full) => return Err(full()),
            Err(why) => return Err(failed(&url, &why.to_string())),
        };
        if is_well(head.status) {
            return Ok(ProxiedAnswer::Carried(as_text(head), carried));
        }
        let location = head.headers.get(LOCATION).and_then(|location| location.to_str().ok());
        if let (301..=303 | 307 | 308, Some(location)) = (head.status.as_u16(), location) {
            return Err(failed(location, "redirects forbidden"));
        }
        let told = carried.whole(REFUSAL_BYTES_MAX).await.unwrap_or_default();
        Err(refusal::of_log(head.status, asked.name, &String::from_utf8_lossy(&told)))
    }

    /// Hands a connection on.
    async fn stream(
        &self,
        config: &KubeletConfig,
        place: Place,
        asked: ConnectRequest<'_>,
        body: RequestBody,
    ) -> Result<ProxiedAnswer, Status> {
        let backend = self.backend(&place.host, config, false)?;
        let (method, headers) = (asked.method.clone(), asked.headers.clone());
        let forwarded =
            Forwarded { method, target: place.target, headers, client: asked.client, user: user(&asked) };
        match forward(&backend, &place.address, forwarded, body).await {
            Ok(answer) => Ok(answer),
            Err(why) => Err(not_upgraded(&why)),
        }
    }

    /// Sends a request on to what runs behind the object.
    async fn visit(
        &self,
        asked: ConnectRequest<'_>,
        body: RequestBody,
    ) -> Result<Option<ProxiedAnswer>, Status> {
        let (address, backend, is_encrypted) = match asked.resource {
            "nodes" => {
                let Some(config) = &self.config else { return Ok(None) };
                let (scheme, name, port) = ends::split("node", asked.name)?;
                let NodePlace { host, port: own, .. } = self.node(name, config).await?;
                forebay_proxy::only_global(&host).await.map_err(Status::bad_request)?;
                match port.is_empty() || port == own.to_string() {
                    true => (place::at(&host, own), self.backend(&host, config, false)?, true),
                    false => self.unknown(&End::new(scheme, &host, port))?,
                }
            }
            "services" => self.unknown(&self.ends.of_service(&self.registry, asked).await?)?,
            _ => {
                let (scheme, name, port) = ends::split("pod", asked.name)?;
                let pod = ("pods", Some(asked.namespace), name);
                let (scheme, port) = (scheme.to_owned(), port.to_owned());
                let end = read(&self.registry, pod, move |pod| ends::of_pod(pod, &scheme, &port));
                self.unknown(&end.await?)?
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
        let forwarded = Forwarded { method, target, headers, client: asked.client, user: user(&asked) };
        match visit(&backend, &address, forwarded, links, body).await {
            Ok(answer) => Ok(Some(answer)),
            Err(why) if is_upgrade => Err(not_upgraded(&why)),
            Err(ProxyError::Full) => Err(full()),
            Err(why) => Err(Status::new(Reason::ServiceUnavailable, why.told(false))),
        }
    }

    /// The way to whoever is there.
    fn unknown(&self, end: &End) -> Result<(Box<str>, Upstream, bool), Status> {
        let backend = self.visits.at(&end.host, end.is_encrypted).map_err(Status::internal)?;
        Ok((end.address(), backend, end.is_encrypted))
    }

    /// What leads to the container that is meant.
    async fn pod(&self, asked: &ConnectRequest<'_>) -> Result<PodPlace, Status> {
        let container = match asked.subresource {
            "portforward" => None,
            _ => Some(asked.query.first("container").unwrap_or_default().to_owned()),
        };
        let (pod, name) = (("pods", Some(asked.namespace), asked.name), asked.name.to_owned());
        read(&self.registry, pod, move |pod| place::of_pod(pod, &name, container.as_deref())).await
    }

    async fn node(&self, name: &str, config: &KubeletConfig) -> Result<NodePlace, Status> {
        let (types, port) = (config.address_types.clone(), config.port);
        read(&self.registry, ("nodes", None, name), move |node| place::of_node(node, &types, port)).await
    }

    /// The way to a kubelet.
    ///
    /// - `anybody`: nobody needs to vouch for it, whatever was configured.
    fn backend(&self, host: &str, config: &KubeletConfig, anybody: bool) -> Result<Upstream, Status> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (trust, turn) = config.credentials.trust();
        if known.turn != turn {
            // What was agreed upon with the certificate of before is not gone on with.
            *known = Known { turn, ..Known::default() };
        }
        let known = if anybody { &mut known.unverified } else { &mut known.verified };
        if let Some(backend) = known.get(host) {
            return Ok(backend.clone());
        }
        let trust = if anybody { Trust::Anybody } else { trust };
        let clock = self.registry.clock().clone();
        let made = Upstream::new(host, &trust, Some(&config.credentials.identity()), clock);
        let made = made.map_err(Status::internal)?;
        if known.len() >= KUBELETS_MAX {
            known.clear();
        }
        known.insert(host.into(), made.clone());
        Ok(made)
    }
}

impl Connects for Kubelets {
    fn bytes_to_read(&self, asked: &ConnectRequest<'_>) -> usize {
        let name = match asked.subresource {
            "proxy" => ends::split("", asked.name).map_or("", |(_, name, _)| name),
            _ => asked.name,
        };
        let namespace = (asked.resource != "nodes").then_some(asked.namespace);
        let beside = (asked.resource == "services").then_some("endpoints");
        let resources = [Some(asked.resource), beside].into_iter().flatten();
        let targets = resources.filter_map(|resource| target(&self.registry, resource, namespace, name).ok());
        targets.filter_map(|target| target.cached()).map(|object| object.body_len()).sum()
    }

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

/// Reads an object of the core group as it is now. It is held no longer than that takes; a long one is read
/// apart from the tasks.
pub(crate) async fn read<T: Send + 'static>(
    registry: &Registry,
    (resource, namespace, name): (&str, Option<&str>, &str),
    read: impl FnOnce(&[u8]) -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let found = registry.get(&target(registry, resource, namespace, name)?, "").await?;
    if found.body_len() < READ_APART_BYTES {
        return read(&found.body());
    }
    let done = forebay_rt::apart(move || read(&found.body())).await;
    done.ok_or_else(|| Status::internal("an object could not be read"))?
}

fn target(
    registry: &Registry,
    resource: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<Target, Status> {
    let served = registry.catalog().resource("", "v1", resource).cloned();
    let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
    Ok(Target::of_server(served, namespace.map(str::to_owned), Some(name.to_owned())))
}

/// Whose turn a request takes.
fn user(asked: &ConnectRequest<'_>) -> Option<Arc<str>> {
    Some(Arc::from(asked.user))
}

fn full() -> Status {
    Status::new(Reason::TooManyRequests, "too many requests are on their way there").retry_after(1)
}

/// Why a connection was not upgraded, as upstream has it: in plain words and for no reason that it knows.
fn not_upgraded(why: &ProxyError) -> Status {
    match why {
        ProxyError::Full => full(),
        why => Status::new(Reason::Unknown, why.told(true)),
    }
}

/// The head of a log, whatever its kubelet takes it for: a browser is not to show as a page what a program
/// has written.
fn as_text(mut head: Parts) -> Parts {
    head.status = StatusCode::OK;
    head.headers.clear();
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    head
}

fn is_well(code: StatusCode) -> bool {
    (StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&code)
}

/// Whether whoever asks for WebSocket takes nothing but what kube-apiserver translates into SPDY for kubelets
/// before 1.36. Everything else these speak by themselves.
fn is_to_be_translated(asked: &ConnectRequest<'_>) -> bool {
    let offered = asked.headers.get(SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok());
    let is_newer = |protocol: &str| match asked.subresource {
        "portforward" => protocol.starts_with("SPDY/3.1+") && protocol.ends_with(".k8s.io"),
        _ => protocol == "v5.channel.k8s.io",
    };
    offered.is_some_and(|offered| offered.split(',').all(|protocol| is_newer(protocol.trim())))
}

fn asked_for_no_upgrade(asked: &ConnectRequest<'_>) -> bool {
    forebay_proxy::asks_for_upgrade(asked.headers).is_none()
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::options::Query;

    use super::*;

    #[test]
    fn a_log_is_text_whatever_its_kubelet_takes_it_for() {
        let answered = http::Response::builder().status(206).header("content-type", "text/html");
        let answered = answered.header("set-cookie", "a=b").header("content-length", "7").body(());
        let head = as_text(answered.expect("an answer").into_parts().0);
        let want: HeaderMap = [(CONTENT_TYPE, HeaderValue::from_static("text/plain"))].into_iter().collect();
        assert_eq!((head.status, head.headers), (StatusCode::OK, want));
    }

    #[test]
    fn why_a_connection_was_not_upgraded_is_said_in_plain_words() {
        let refused = ProxyError::Unreached("dial tcp 10.0.0.1:1: connect: connection refused".to_owned());
        let status = not_upgraded(&refused);
        let why = "error dialing backend: dial tcp 10.0.0.1:1: connect: connection refused";
        assert_eq!((status.reason, &*status.message), (Reason::Unknown, why));
        assert_eq!(not_upgraded(&ProxyError::Full).reason, Reason::TooManyRequests);
    }

    #[test]
    fn older_kubelets_are_asked_for_the_protocols_that_they_speak_over_websocket() {
        const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
        for (subresource, offered, want) in [
            ("exec", None, false),
            ("exec", Some("v4.channel.k8s.io"), false),
            ("exec", Some("base64.channel.k8s.io"), false),
            ("exec", Some("v5.channel.k8s.io"), true),
            ("attach", Some("v5.channel.k8s.io"), true),
            ("exec", Some("v5.channel.k8s.io, v4.channel.k8s.io"), false),
            ("portforward", Some("v4.channel.k8s.io"), false),
            ("portforward", Some("v5.channel.k8s.io"), false),
            ("portforward", Some(TUNNEL), true),
            ("exec", Some(TUNNEL), false),
        ] {
            let offered = offered.map(|offered| (SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(offered)));
            let (headers, query) = (offered.into_iter().collect(), Query::default());
            let asked = ConnectRequest {
                resource: "pods",
                namespace: "ns",
                name: "p",
                subresource,
                method: &Method::GET,
                query: &query,
                headers: &headers,
                is_websocket: true,
                path: "",
                rest: &[],
                raw_query: None,
                host: "",
                user: "bob",
                client: None,
            };
            assert_eq!(is_to_be_translated(&asked), want, "{subresource} {headers:?}");
        }
    }
}
