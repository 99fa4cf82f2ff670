//! Which requests go to which server.
//!
//! In: the group and version of a request. Out: the way to whoever serves them. Never: looks a service up by
//! itself; who knows them does.
//!
//! Owner of the table: whoever follows the APIServices; it is published whole.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use forebay_apimachinery::Caller;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HOST, LOCATION, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};

use crate::backend::{OtherAddresses, RequestBody, Upstream};
use crate::carried::ProxiedAnswer;
use crate::error::ProxyError;
use crate::headers::{asks_for_upgrade, forwarded_for, without_hops};
use crate::identity::Spoken;
use crate::links::{Links, cleaned, without_origins};

const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// A service that serves a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceReference {
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub port: u16,
}

/// Knows where services are.
pub trait Locator: Send + Sync {
    /// The address that leads there, host and port.
    ///
    /// # Errors
    /// Why there is none.
    fn address(&self, service: &ServiceReference) -> Result<Box<str>, String>;

    /// Others that do, some of them: asked for where that one does not connect.
    fn others(&self, service: &ServiceReference) -> Vec<Box<str>>;
}

/// The way to who serves a version.
pub struct ProxyRoute {
    pub group: Box<str>,
    pub version: Box<str>,
    pub service: ServiceReference,
    is_available: AtomicBool,
    backend: Result<Upstream, String>,
    reach: Arc<dyn Locator>,
    spoken: Arc<Spoken>,
}

/// A request that is sent on.
pub struct Forwarded {
    pub method: Method,
    /// Path and query, as they came.
    pub target: Uri,
    pub headers: HeaderMap,
    /// For whom, where that is to be told.
    pub client: Option<IpAddr>,
    /// Whose turn it takes, by name; nobody's where this server asks by itself.
    pub user: Option<Arc<str>>,
}

/// All routes, as they are now.
#[derive(Default)]
pub struct Routes {
    // Of `all`, for who looks whether there is any.
    count: AtomicUsize,
    // Ordered by group and version, each once.
    all: ArcSwap<Vec<Arc<ProxyRoute>>>,
}

impl ProxyRoute {
    /// - `backend`: its connections, or what of its configuration cannot be used.
    pub fn new(
        (group, version): (&str, &str),
        service: ServiceReference,
        backend: Result<Upstream, String>,
        reach: Arc<dyn Locator>,
        spoken: Arc<Spoken>,
    ) -> ProxyRoute {
        let is_available = AtomicBool::new(false);
        ProxyRoute {
            group: group.into(),
            version: version.into(),
            service,
            is_available,
            backend,
            reach,
            spoken,
        }
    }

    /// Whether requests are sent on.
    pub fn set_available(&self, is_available: bool) {
        self.is_available.store(is_available, Ordering::Relaxed);
    }

    pub fn is_available(&self) -> bool {
        self.is_available.load(Ordering::Relaxed)
    }

    /// Sends a client's request on in the name of `caller`, if the server is known to be there. Its answer
    /// may not send the client elsewhere, nor let other sites in.
    ///
    /// # Errors
    /// [`ProxyError`].
    pub async fn send(
        &self,
        forwarded: Forwarded,
        body: RequestBody,
        caller: &Caller,
    ) -> Result<ProxiedAnswer, ProxyError> {
        if !self.is_available() {
            return Err(ProxyError::Unavailable);
        }
        let mut answer = self.send_anyway(forwarded, body, caller).await?;
        if let ProxiedAnswer::Carried(head, _) = &mut answer {
            let leads_on = head.headers.get(LOCATION).is_some_and(|location| !location.is_empty());
            if head.status.is_redirection() && leads_on {
                return Err(ProxyError::Redirected);
            }
            without_origins(&mut head.headers);
        }
        Ok(answer)
    }

    /// The same, however things stand, for who finds that out.
    ///
    /// # Errors
    /// [`ProxyError`].
    pub async fn send_anyway(
        &self,
        Forwarded { method, target, mut headers, client, user }: Forwarded,
        body: RequestBody,
        caller: &Caller,
    ) -> Result<ProxiedAnswer, ProxyError> {
        let backend = self.backend.as_ref().map_err(|why| ProxyError::Unusable(why.clone()))?;
        let first = self.reach.address(&self.service).map_err(|_| ProxyError::Unavailable)?;
        let upgrade = asks_for_upgrade(&headers);
        without_hops(&mut headers);
        headers.remove(HOST);
        self.spoken.tell(&mut headers, caller)?;
        if upgrade.is_none() {
            for (name, value) in [
                (FORWARDED_URI, cleaned(target.path()).as_str()),
                (FORWARDED_HOST, &*first),
                (FORWARDED_PROTO, "https"),
            ] {
                if let Ok(value) = HeaderValue::from_str(value) {
                    headers.insert(name, value);
                }
            }
        }
        let forwarded = Forwarded { method, target, headers, client, user };
        pass(backend, (&first, Some(&|| self.reach.others(&self.service))), forwarded, upgrade, body).await
    }

    /// Where it is sent to first.
    ///
    /// # Errors
    /// Why that is nowhere.
    pub fn address(&self) -> Result<Box<str>, String> {
        self.reach.address(&self.service)
    }

    /// Closes the connections that wait: those of before may lead to nobody.
    pub fn close_idle(&self) {
        if let Ok(backend) = &self.backend {
            backend.close_idle();
        }
    }
}

/// Sends a client's request to a server that is not told who asks: no header that says so is sent on.
///
/// - `address`: host and port.
///
/// # Errors
/// [`ProxyError`].
pub async fn forward(
    backend: &Upstream,
    address: &str,
    Forwarded { method, target, mut headers, client, user }: Forwarded,
    body: RequestBody,
) -> Result<ProxiedAnswer, ProxyError> {
    let upgrade = asks_for_upgrade(&headers);
    without_hops(&mut headers);
    headers.remove(HOST);
    Spoken::default().hush(&mut headers);
    pass(backend, (address, None), Forwarded { method, target, headers, client, user }, upgrade, body).await
}

/// The same to what a client has put there, which knows nothing of the path that leads there: its links are
/// made to lead back through this server.
///
/// # Errors
/// [`ProxyError`].
pub async fn visit(
    backend: &Upstream,
    address: &str,
    Forwarded { method, target, mut headers, client, user }: Forwarded,
    links: Links,
    body: RequestBody,
) -> Result<ProxiedAnswer, ProxyError> {
    let upgrade = asks_for_upgrade(&headers);
    without_hops(&mut headers);
    Spoken::default().hush(&mut headers);
    if let Ok(host) = HeaderValue::from_str(&links.asked_host) {
        headers.insert(HOST, host);
    }
    if upgrade.is_some() {
        let forwarded = Forwarded { method, target, headers, client, user };
        return pass(backend, (address, None), forwarded, upgrade, body).await;
    }
    if let Ok(forwarded) = HeaderValue::from_str(&links.joined(target.path())) {
        headers.insert(FORWARDED_URI, forwarded);
    }
    let texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if texts.flat_map(|text| text.split(',')).any(|sort| sort.trim_start().starts_with("text/html")) {
        // What is compressed could not be read on its way.
        headers.remove(ACCEPT_ENCODING);
    }
    let forwarded = Forwarded { method, target, headers, client, user };
    let mut answer = pass(backend, (address, None), forwarded, None, body).await?;
    if let ProxiedAnswer::Carried(head, carried) = &mut answer
        && links.mend(head)
    {
        carried.mend(links);
    }
    Ok(answer)
}

/// - `headers` of what is forwarded: without those of a connection.
async fn pass(
    backend: &Upstream,
    addresses: (&str, OtherAddresses<'_>),
    Forwarded { method, target, mut headers, client, user }: Forwarded,
    upgrade: Option<HeaderValue>,
    body: RequestBody,
) -> Result<ProxiedAnswer, ProxyError> {
    if let Some(client) = client {
        forwarded_for(&mut headers, client);
    }
    if let Some(protocol) = &upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol.clone());
    }
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = of_origin(&target);
    *request.headers_mut() = headers;
    let answer = backend.send(user, addresses, request).await?;
    match &answer {
        ProxiedAnswer::Upgraded(..) if upgrade.is_none() => {
            Err(ProxyError::Broken("the server speaks another protocol, unasked".to_owned()))
        }
        ProxiedAnswer::Carried(head, _) if upgrade.is_some() && head.status < StatusCode::BAD_REQUEST => {
            let code = head.status.as_u16();
            Err(ProxyError::Broken(format!("invalid upgrade response: status code {code}")))
        }
        _ => Ok(answer),
    }
}

/// As a server is asked, whatever form the client used.
fn of_origin(target: &Uri) -> Uri {
    let path = target.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    Uri::from(path)
}

impl Routes {
    /// From now on it is these.
    ///
    /// - `all`: ordered by group and version, each once.
    pub fn replace(&self, all: Vec<Arc<ProxyRoute>>) {
        self.count.store(all.len(), Ordering::Relaxed);
        self.all.store(Arc::new(all));
    }

    /// Whether there is none, which costs next to nothing to know.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Who serves a version, if it is somebody else.
    pub fn find(&self, group: &str, version: &str) -> Option<Arc<ProxyRoute>> {
        if self.is_empty() {
            return None;
        }
        let all = self.all.load();
        let at = all.binary_search_by(|route| (&*route.group, &*route.version).cmp(&(group, version)));
        at.ok().map(|at| all[at].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nowhere;

    impl Locator for Nowhere {
        fn address(&self, _: &ServiceReference) -> Result<Box<str>, String> {
            Ok("127.0.0.1:1".into())
        }

        fn others(&self, _: &ServiceReference) -> Vec<Box<str>> {
            Vec::new()
        }
    }

    fn route(group: &str, version: &str) -> Arc<ProxyRoute> {
        let service = ServiceReference { namespace: "ns".into(), name: "svc".into(), port: 443 };
        let backend = Err("it has no connections".to_owned());
        Arc::new(ProxyRoute::new((group, version), service, backend, Arc::new(Nowhere), Arc::default()))
    }

    #[test]
    fn a_version_is_found_among_others_and_only_as_long_as_it_is_there() {
        let routes = Routes::default();
        assert!(routes.is_empty() && routes.find("a.io", "v1").is_none());
        routes.replace(vec![route("a.io", "v1"), route("a.io", "v2"), route("b.io", "v1")]);
        let found = |group, version| routes.find(group, version).map(|it| it.version.to_string());
        assert_eq!(found("a.io", "v2").as_deref(), Some("v2"));
        assert_eq!(found("b.io", "v1").as_deref(), Some("v1"));
        assert_eq!((found("b.io", "v2"), found("", "v1")), (None, None));
        routes.replace(Vec::new());
        assert!(found("a.io", "v2").is_none());
    }

    #[tokio::test]
    async fn what_is_not_available_is_not_asked_and_what_cannot_be_used_says_why() {
        let route = route("a.io", "v1");
        let asked = || Forwarded {
            method: Method::GET,
            target: Uri::from_static("/apis/a.io/v1/things"),
            headers: HeaderMap::new(),
            client: None,
            user: None,
        };
        let body = || RequestBody::Right(Default::default());
        let caller = Caller::default();
        let sent = route.send(asked(), body(), &caller).await;
        assert_eq!(sent.err().map(|why| why.to_string()).as_deref(), Some("service unavailable"));
        route.set_available(true);
        let sent = route.send(asked(), body(), &caller).await;
        assert_eq!(sent.err().map(|why| why.to_string()).as_deref(), Some("it has no connections"));
    }
}
