//! Requests that another server answers, which this one has let in.
//!
//! In: a request, and the way to who serves it. Out: that server's answer as it comes, or why there is none.
//! Never: reads what is carried; lets a client say who it is.
//!
//! Source: kube-aggregator v0.36.3 `apiserver/handler_proxy.go`.

use std::sync::Arc;

use forebay_apimachinery::options::Query;
use forebay_apimachinery::{Lease, Status};
use forebay_catalog::Target;
use forebay_proxy::limits::{REQUEST_BYTES, WATCH_BYTES};
use forebay_proxy::{
    Carried, ConnectRequest, Connects, Forwarded, Lasts, MESSAGE_PROTOCOLS, ProxiedAnswer, ProxiedBody,
    ProxiedMessages, ProxyError, ProxyRoute, RequestBody, asks_for_upgrade, without_hops,
};
use forebay_room::Held;
use forebay_transport::websocket;
use http::response::Parts;
use http::{HeaderValue, Method, Response, header};
use hyper::body::Incoming;

use crate::answer::{self, AUDIT_ID, HttpResponse};
use crate::authz;
use crate::connect_options;
use crate::flow_control;
use crate::handler::{Handler, Head};
use crate::request_info::RequestInfo;
use crate::response::{Content, ResponseBody};
use crate::status::{self, Failure};
use crate::warnings;

/// The way to who answers a request, if that is somebody else. Of paths that are about no resource it is the
/// document of a version, and what OpenAPI says of it.
pub fn route(handler: &Handler, info: &RequestInfo) -> Option<std::sync::Arc<ProxyRoute>> {
    let routes = &handler.aggregation.routes;
    if routes.is_empty() || info.is_malformed {
        return None;
    }
    if info.is_resource {
        return routes.find(&info.group, &info.version);
    }
    let path = info.path.strip_prefix("/openapi/v3").unwrap_or(&info.path);
    let (group, version) = path.strip_prefix("/apis/")?.split_once('/')?;
    routes.find(group, version.strip_suffix('/').unwrap_or(version))
}

/// Sends a request on, and its answer back.
///
/// # Errors
/// 400 for a path that leads elsewhere; 429.
pub async fn answer(
    handler: &Handler,
    head: &Head,
    route: &ProxyRoute,
    body: Incoming,
) -> Result<HttpResponse, Failure> {
    // What was authorized is what the segments say, whatever the other server makes of these.
    if head.info.path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(Status::bad_request("a path that is sent on has no segments '.' and '..'").into());
    }
    let is_long = head.info.is_long_running();
    if !is_long && head.seat().is_none() {
        handler.sit(head)?;
    }
    handler.begin(head, || flow_control::proxied(is_long, REQUEST_BYTES, WATCH_BYTES)).await?;
    let mut lease = match is_long {
        true => None,
        false => {
            let taken = handler.rooms.answers.take(head.asker.name(), REQUEST_BYTES).await;
            Some(taken.map_err(|_full| handler.rooms.full())?)
        }
    };
    let mut headers = head.headers.clone();
    headers.insert(AUDIT_ID, head.audit_id.clone());
    let (method, target) = (head.method.clone(), head.uri.clone());
    let user = Some(Arc::from(head.asker.name()));
    let forwarded = Forwarded { method, target, headers, client: head.remote, user };
    let lasts = match is_long {
        true => Lasts::WhileServed(Box::new(handler.drain.watch(None))),
        false => Lasts::Until(handler.clock.now() + handler.request_timeout),
    };
    let caller = head.asker.caller();
    let sent = route.send(forwarded, RequestBody::Left(body), &caller);
    let sent = match &mut lease {
        Some(lease) => away(handler, head, route, lease, sent).await?,
        None => sent.await,
    };
    let mut response = match sent {
        Ok(answer) => passed_on(handler, head, answer, lasts),
        Err(ProxyError::Full) => return Err(handler.rooms.full_behind(&whom(route))),
        Err(why @ ProxyError::Redirected) => return Ok(answer::text(status::MISLED, why.to_string())),
        Err(why @ ProxyError::Unusable(_)) => return Ok(answer::text(status::BROKEN, format!("{why}\n"))),
        Err(why) => {
            tracing::debug!(group = &*route.group, %why, "a request could not be sent on");
            let told = why.told(asks_for_upgrade(&head.headers).is_some());
            return Ok(answer::text(status::UNAVAILABLE, format!("{told}\n")));
        }
    };
    response.body_mut().set_lease(lease);
    Ok(response)
}

/// Who is waited for, as a refusal says it.
fn whom(route: &ProxyRoute) -> String {
    format!("{}/{}", route.group, route.version)
}

/// What `wait` gives. Who waits for another server has no turn, and what it holds is counted among what waits
/// for that one: if it hangs, others find room for their answers.
///
/// # Errors
/// 429: too many wait for it.
async fn away<T>(
    handler: &Handler,
    head: &Head,
    route: &ProxyRoute,
    lease: &mut Held,
    wait: impl Future<Output = T>,
) -> Result<T, Failure> {
    let (whom, bytes) = (whom(route), lease.bytes());
    let gone = handler.rooms.away.go(&Arc::from(&*whom), bytes);
    let gone = gone.ok_or_else(|| handler.rooms.full_behind(&whom))?;
    lease.set(bytes - gone.bytes());
    let came = head.context().away(wait).await;
    drop(gone);
    lease.set(bytes);
    Ok(came)
}

/// Methods of `proxy`; those of the others are their verbs.
const METHODS: [Method; 7] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS];

/// Answers a request for what runs behind an object: whoever knows it does, or it is said that nobody does.
///
/// # Errors
/// 403: whoever acts within a container creates something, and policies and webhooks may have something
/// against it. 429; 405; what is said by who knows.
pub async fn connected(
    handler: &Handler,
    head: &Head,
    target: &Target,
    body: Incoming,
) -> Result<HttpResponse, Failure> {
    let subresource = target.subresource.as_deref().unwrap_or_default();
    if subresource == "proxy" && !METHODS.contains(&head.method) {
        return Err(Failure::no_such_method());
    }
    let read = || {
        let behind = handler.aggregation.behind.as_ref();
        behind.map_or(0, |behind| behind.bytes_to_read(&asked(head, target, &head.query)))
    };
    handler.begin(head, || flow_control::connection(read(), WATCH_BYTES)).await?;
    let (query, told) = admitted(handler, head, target).await?;
    let query = query.as_ref().unwrap_or(&head.query);
    if matches!(subresource, "exec" | "attach" | "portforward") {
        authz::may_connect(&handler.access, &head.asker, &head.info).await?;
    }
    if let Some(behind) = &handler.aggregation.behind
        && let Some(mut answer) = connect(handler, head, (&**behind, target, query), body).await?
    {
        warnings::headers(&told).into_iter().for_each(|value| {
            answer.headers_mut().append(header::WARNING, value);
        });
        return Ok(answer);
    }
    match handler.api.connect(target).wait().await? {}
}

/// Asks whoever judges writes: another query, if they say something else of it, and warnings.
async fn admitted(
    handler: &Handler,
    head: &Head,
    target: &Target,
) -> Result<(Option<Query>, Vec<String>), Failure> {
    let known = target.subresource.as_deref().and_then(|name| target.served.subresource(name));
    let Some(known) = known else { return Ok((None, Vec::new())) };
    if &*known.name != "log" && head.query.first("dryRun").is_some() {
        return Err(Status::bad_request("dryRun is not supported").into());
    }
    let segments = head.info.rest.iter().flat_map(|segment| ["/", segment]);
    let Some(options) = connect_options::of(&known.gvk, &head.query, &segments.collect::<String>())? else {
        return Ok((None, Vec::new()));
    };
    let target = Target { lease: Lease::of_one_tree(), context: head.context(), ..target.clone() };
    let admitted = handler.api.admit_connection(&target, options.clone()).wait().await?;
    let query = (admitted.value != options).then(|| connect_options::query(&admitted.value));
    Ok((query, admitted.warnings))
}

/// Sends a request for what runs behind an object on to who knows it, and its answer back.
///
/// # Errors
/// What is said by who knows.
async fn connect(
    handler: &Handler,
    head: &Head,
    (behind, target, query): (&dyn Connects, &Target, &Query),
    body: Incoming,
) -> Result<Option<HttpResponse>, Failure> {
    let lasts = Lasts::WhileServed(Box::new(handler.drain.watch(None)));
    let answer = behind.connect(asked(head, target, query), RequestBody::Left(body)).await?;
    let is_log = target.subresource.as_deref() == Some("log");
    let in_messages = is_log && websocket::is_asked(&head.headers) && head.channel.is_connection();
    Ok(answer.map(|answer| match answer {
        ProxiedAnswer::Carried(_, carried) if in_messages => messages(handler, head, carried, lasts),
        answer => passed_on(handler, head, answer, lasts),
    }))
}

/// What is carried as messages over WebSocket, if they can agree on how.
fn messages(handler: &Handler, head: &Head, carried: Carried, lasts: Lasts) -> HttpResponse {
    let mut response: HttpResponse = websocket::answer_speaking(&head.headers, &MESSAGE_PROTOCOLS);
    if response.status() != status::UPGRADED {
        return response;
    }
    let readers = (&handler.stalled_readers, &head.channel);
    let body = ProxiedBody::new(carried, lasts, readers, handler.clock.clone());
    let protocol = response.headers().get(header::SEC_WEBSOCKET_PROTOCOL);
    let protocol = protocol.and_then(|protocol| protocol.to_str().ok()).unwrap_or_default();
    let messages = ProxiedMessages::new(body, protocol);
    *response.body_mut() = ResponseBody::new(Content::Messages(Box::new(messages)));
    response
}

fn asked<'a>(head: &'a Head, target: &'a Target, query: &'a Query) -> ConnectRequest<'a> {
    ConnectRequest {
        namespace: target.namespace(),
        name: target.name(),
        subresource: target.subresource.as_deref().unwrap_or_default(),
        resource: target.served.resource(),
        method: &head.method,
        query,
        headers: &head.headers,
        is_websocket: websocket::is_asked(&head.headers),
        path: &head.info.path,
        rest: &head.info.rest,
        raw_query: head.uri.query(),
        host: host(head),
        user: head.asker.name(),
        client: head.remote,
    }
}

/// By which host the client knows this server: HTTP/2 has it in the URL.
fn host(head: &Head) -> &str {
    let named = head.headers.get(header::HOST).and_then(|value| value.to_str().ok());
    named.or(head.uri.authority().map(|authority| authority.as_str())).unwrap_or_default()
}

fn passed_on(handler: &Handler, head: &Head, answer: ProxiedAnswer, lasts: Lasts) -> HttpResponse {
    match answer {
        ProxiedAnswer::Upgraded(parts, far) => upgraded(parts, Content::Tunnel(Some(Box::new(far)))),
        ProxiedAnswer::Carried(parts, carried) => {
            let readers = (&handler.stalled_readers, &head.channel);
            let body = ProxiedBody::new(carried, lasts, readers, handler.clock.clone());
            let mut response = response(parts, Content::Proxied(body));
            // Beside what the other server says of it, as upstream has it.
            response.headers_mut().append(header::CACHE_CONTROL, answer::CACHE_CONTROL);
            response
        }
        ProxiedAnswer::Moved(location) => moved(&location),
        ProxiedAnswer::Nothing => nothing(),
    }
}

fn nothing() -> HttpResponse {
    let mut response = answer::response(status::NOTHING, "", ResponseBody::whole(""));
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
}

/// The client is to ask at another path.
fn moved(location: &str) -> HttpResponse {
    let mut response = answer::response(status::MOVED, "", ResponseBody::whole(""));
    response.headers_mut().remove(header::CONTENT_TYPE);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn response(mut parts: Parts, content: Content) -> HttpResponse {
    without_hops(&mut parts.headers);
    let mut response = Response::new(ResponseBody::new(content));
    (*response.status_mut(), *response.headers_mut()) = (parts.status, parts.headers);
    response
}

/// What it is upgraded to stays, with the headers that make it so.
fn upgraded(parts: Parts, content: Content) -> HttpResponse {
    let protocol = parts.headers.get(header::UPGRADE).cloned();
    let mut response = response(parts, content);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(protocol) = protocol {
        response.headers_mut().insert(header::UPGRADE, protocol);
    }
    response
}
