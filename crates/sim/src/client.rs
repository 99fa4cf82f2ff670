//! What all clients have in common: requests by one of two ways, to the verbs or over the network, that end
//! when the server does. What they are answered is bytes, as it is on the wire.

use forebay_api::{Answer, Body};
use forebay_apimachinery::Status;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions, Query, UpdateOptions};
use forebay_catalog::Target;
use forebay_reads::{As, Now, Step, Wait, WatchBody, WatchSession};
use forebay_registry::Registry;
use forebay_rt::{Clock, Random};
use http::{Method, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use crate::life::Life;
use crate::resources::{Collection, Selection};

/// How a client reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Verbs,
    Http,
}

/// The server says no, or not now.
#[derive(Clone, Debug)]
pub struct Refused {
    pub reason: String,
    pub message: String,
}

/// What is done to one object.
#[derive(Clone, Debug)]
pub enum Change {
    Create(Value),
    Update(Value),
    Delete,
}

/// A watch that goes on.
pub enum Frames {
    /// The machine that the server drives, driven here.
    Verbs {
        session: Box<WatchSession>,
        clock: Clock,
    },
    Http(Incoming),
}

impl Way {
    pub fn draw(random: &Random) -> Way {
        if random.below(2) == 0 { Way::Verbs } else { Way::Http }
    }
}

impl Refused {
    pub fn is(&self, reason: &str) -> bool {
        self.reason == reason
    }

    fn read(status: &Value) -> Refused {
        let text = |member: &str| status[member].as_str().unwrap_or("").to_string();
        Refused { reason: text("reason"), message: text("message") }
    }
}

impl From<Status> for Refused {
    fn from(status: Status) -> Refused {
        Refused { reason: status.reason.as_str().to_string(), message: status.message }
    }
}

/// The answer of `call`, or none: the server is gone.
pub async fn within<T>(life: &Life, call: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = life.ended.raised() => None,
        answer = call => Some(answer),
    }
}

/// A LIST's whole body. None: the server is gone, or the body broke off.
///
/// - `pace`: what the client does between two pieces of it.
pub async fn list(
    life: &Life,
    way: Way,
    selection: &Selection,
    query: &str,
    pace: impl AsyncFnMut(),
) -> Option<Result<Vec<u8>, Refused>> {
    let query = format!("{query}{}", selection.query());
    within(life, read_list(life, way, selection, &query, pace)).await.flatten()
}

async fn read_list(
    life: &Life,
    way: Way,
    selection: &Selection,
    query: &str,
    mut pace: impl AsyncFnMut(),
) -> Option<Result<Vec<u8>, Refused>> {
    let mut bytes = Vec::new();
    if way == Way::Http {
        let path = path(selection.resource, selection.namespace, None, query);
        let answer = answered(life.network.send(Method::GET, &path, Vec::new()).await?).await?;
        let mut body = match answer {
            Ok(body) => body,
            Err(refused) => return Some(Err(refused)),
        };
        while let Some(frame) = body.frame().await {
            bytes.extend(frame.ok()?.into_data().unwrap_or_default());
            pace().await;
        }
        return Some(Ok(bytes));
    }
    let target = target(&life.registry, selection.resource, selection.namespace, None);
    let options = ListOptions::from_query(&Query::parse(query));
    let body = match options {
        Ok(options) => life.registry.list(&target, &options, As::Object).await,
        Err(status) => Err(status),
    };
    let mut body = match body {
        Ok(body) => body,
        Err(status) => return Some(Err(status.into())),
    };
    while body.next_chunk(300, &mut bytes) {
        pace().await;
    }
    Some(Ok(bytes))
}

/// A WATCH that has begun. None: the server is gone, or the connection broke.
pub async fn watch(
    life: &Life,
    way: Way,
    selection: &Selection,
    query: &str,
) -> Option<Result<Frames, Refused>> {
    if way == Way::Http {
        let path = path(selection.resource, selection.namespace, None, query);
        let sent = within(life, life.network.send(Method::GET, &path, Vec::new())).await??;
        let answer = within(life, answered(sent)).await??;
        return Some(answer.map(Frames::Http));
    }
    let target = target(&life.registry, selection.resource, selection.namespace, None);
    let options = match ListOptions::from_query(&Query::parse(query)) {
        Ok(options) => options,
        Err(status) => return Some(Err(status.into())),
    };
    let body = within(life, life.registry.watch(&target, &options, As::Object, false)).await?;
    let clock = life.registry.clock().clone();
    let session = |body: WatchBody| Frames::Verbs { session: Box::new(body.into_session()), clock };
    Some(body.map(session).map_err(Refused::from))
}

impl Frames {
    /// Appends what comes next, about `bytes_max`. False at the end. Cancel-safe.
    pub async fn next(&mut self, bytes_max: usize, bytes: &mut Vec<u8>) -> bool {
        match self {
            Frames::Verbs { session, clock } => loop {
                match session.step(&Now::of(clock), bytes_max, bytes) {
                    Step::Frames => return true,
                    Step::End => return false,
                    Step::Wait(what) => wait(session, what, clock).await,
                }
            },
            Frames::Http(body) => match body.frame().await {
                Some(Ok(frame)) => {
                    bytes.extend(frame.into_data().unwrap_or_default());
                    true
                }
                Some(Err(_)) | None => false,
            },
        }
    }
}

/// What a session waits for. Cancel-safe: it says again what it waits for.
async fn wait(session: &mut WatchSession, what: Wait, clock: &Clock) {
    match what {
        Wait::Turn => tokio::task::yield_now().await,
        Wait::Proof { deadline } => {
            session.settled(deadline).await;
            session.prove();
        }
        Wait::Event { until } => tokio::select! {
            biased;
            () = std::future::poll_fn(|cx| session.poll_event(cx)) => {}
            () = clock.sleep_until(until) => {}
        },
    }
}

/// One object as it is shown.
pub async fn get(
    life: &Life,
    way: Way,
    resource: Collection,
    (namespace, name): (&str, &str),
    version: &str,
) -> Option<Result<Value, Refused>> {
    if way == Way::Http {
        let path = path(resource, Some(namespace), Some(name), &format!("resourceVersion={version}"));
        return within(life, exchange(life, Method::GET, &path, Vec::new())).await?;
    }
    let target = target(&life.registry, resource, Some(namespace), Some(name));
    let found = within(life, life.registry.get(&target, version)).await?;
    Some(found.map_err(Refused::from).map(|object| {
        let mut bytes = Vec::new();
        target.served.write_object(&object, None, &mut bytes);
        serde_json::from_slice(&bytes).unwrap_or_default()
    }))
}

/// Changes an object through the verbs. None: it is not known what became of it.
pub async fn change(
    life: &Life,
    way: Way,
    resource: Collection,
    (namespace, name): (&str, &str),
    change: Change,
) -> Option<Result<Value, Refused>> {
    if way == Way::Http {
        let (method, named, body) = match change {
            Change::Create(value) => (Method::POST, None, value.to_string()),
            Change::Update(value) => (Method::PUT, Some(name), value.to_string()),
            Change::Delete => (Method::DELETE, Some(name), String::new()),
        };
        let path = path(resource, Some(namespace), named, "");
        return within(life, exchange(life, method, &path, body.into_bytes())).await?;
    }
    let registry = &life.registry;
    let named = target(registry, resource, Some(namespace), Some(name));
    let call = async {
        match change {
            Change::Create(value) => {
                let all = target(registry, resource, Some(namespace), None);
                registry.create(&all, &Body::Value(value), &CreateOptions::default()).await
            }
            Change::Update(value) => {
                registry.update(&named, &Body::Value(value), &UpdateOptions::default()).await
            }
            Change::Delete => registry.delete(&named, &DeleteOptions::default()).await,
        }
    };
    Some(within(life, call).await?.map(|answer| object(&answer)).map_err(Refused::from))
}

/// A request whose answer is one object.
async fn exchange(life: &Life, method: Method, path: &str, body: Vec<u8>) -> Option<Result<Value, Refused>> {
    match answered(life.network.send(method, path, body).await?).await? {
        Ok(body) => {
            let whole = body.collect().await.ok()?.to_bytes();
            Some(Ok(serde_json::from_slice(&whole).unwrap_or_default()))
        }
        Err(refused) => Some(Err(refused)),
    }
}

/// The body of a success, or what was refused.
async fn answered(response: Response<Incoming>) -> Option<Result<Incoming, Refused>> {
    if response.status().is_success() {
        return Some(Ok(response.into_body()));
    }
    let whole = response.into_body().collect().await.ok()?.to_bytes();
    Some(Err(Refused::read(&serde_json::from_slice(&whole).unwrap_or_default())))
}

fn object(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.outcome.clone().json()).unwrap_or_default()
}

fn path(resource: Collection, namespace: Option<&str>, name: Option<&str>, query: &str) -> String {
    let namespace = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    let name = name.map(|name| format!("/{name}")).unwrap_or_default();
    format!("/api/v1{namespace}/{}{name}?{}", resource.plural(), query.trim_start_matches('&'))
}

fn target(registry: &Registry, resource: Collection, namespace: Option<&str>, name: Option<&str>) -> Target {
    at(registry, resource.plural(), namespace, name)
}

/// A resource of the core group.
pub fn at(registry: &Registry, plural: &str, namespace: Option<&str>, name: Option<&str>) -> Target {
    let served = registry.catalog().resource("", "v1", plural).expect("the core group is served").clone();
    let (namespace, name) = (namespace.map(String::from), name.map(String::from));
    Target::of_server(served, namespace, name)
}
