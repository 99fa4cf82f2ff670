//! A reader: asks as an informer of client-go does, with its defaults, and keeps nothing.
//!
//! In: a server, a collection, who asks. Out: [`Standing`], how far it has come, and each request in a log.
//! One task and one connection each, as informers in as many processes have. Never: a body that is kept; a
//! rule of its own: those are client-go's ([`forebay_client_go_rules`]), and a test plays one script to both.

mod cut;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client_go_rules::{Aftermath, Ask, Move, Reflector, fraction};
use forebay_rt::Random;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, Response, header};

use self::cut::SkippedBody;
use crate::Error;
use crate::arrivals::{Arrivals, Purpose, SentRequest};
use crate::client::{Client, Protocol, RestConfig};
use crate::draw::Draw;

/// A watch is asked for as long as this at least, and up to twice as long.
const WATCH_SECONDS: f64 = 300.0;
/// Of an answer that is an error so much is read.
const STATUS_BYTES: usize = 64 << 10;

/// What a reader reads, and as who. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Source {
    pub target: RestConfig,
    pub protocol: Protocol,
    /// Path of the collection.
    pub path: Arc<str>,
    /// The value of the header Authorization, where its certificate does not say who asks.
    pub authorization: Option<Arc<str>>,
}

/// How far a reader has come.
#[derive(Debug, Default)]
pub struct Standing {
    pub revision: AtomicU64,
    /// Whether it has all objects and an open watch.
    pub is_open: AtomicBool,
}

struct Reader {
    source: Source,
    reflector: Reflector,
    began: Instant,
    random: Random,
    client: Option<Client>,
    standing: Arc<Standing>,
    arrivals: Arc<Arrivals>,
}

/// Reads until it is dropped.
pub async fn run(source: Source, mut draw: Draw, standing: Arc<Standing>, arrivals: Arc<Arrivals>) {
    let mut random = || Random::seeded(draw.number());
    let reflector = Reflector::new(Duration::ZERO, random());
    let began = Instant::now();
    let mut reader = Reader { source, reflector, began, random: random(), client: None, standing, arrivals };
    loop {
        match reader.reflector.next(began.elapsed()) {
            Move::Wait(wait) => tokio::time::sleep(wait).await,
            Move::Send(ask) => {
                let outcome = reader.ask(&ask).await;
                reader.standing.is_open.store(false, Ordering::Relaxed);
                reader.reflector.heard(began.elapsed(), outcome);
                reader.stand(false);
            }
        }
    }
}

impl Reader {
    async fn ask(&mut self, ask: &Ask) -> Aftermath {
        let seconds = WATCH_SECONDS * (1.0 + fraction(&self.random));
        let path = format!("{}?{}", self.source.path, query(ask, seconds as u64));
        let at = Instant::now();
        let kind = Purpose::from(ask);
        let answer = match self.send(&path).await {
            Ok(answer) => answer,
            Err(why) => {
                self.client = None;
                let outcome = unanswered(&why);
                let code =
                    if outcome == Aftermath::Refused { SentRequest::REFUSED } else { SentRequest::LOST };
                self.arrivals.note(SentRequest { at, kind, code });
                return outcome;
            }
        };
        self.arrivals.note(SentRequest { at, kind, code: answer.status().as_u16() });
        match (answer.status().as_u16(), ask) {
            (200, Ask::List { .. }) => self.list(answer).await,
            (200, _) => {
                self.stand(true);
                self.watch(answer).await
            }
            _ => self.refusal(answer).await,
        }
    }

    /// Sends on the connection there is, or on a new one where that is lost before it has carried anything.
    async fn send(&mut self, path: &str) -> Result<Response<Incoming>, Error> {
        let Source { target, protocol, authorization, .. } = &self.source;
        let mut headers = vec![(header::ACCEPT, "application/json"), (header::ACCEPT_ENCODING, "gzip")];
        headers.push((header::USER_AGENT, "forebay-bench reader"));
        headers.extend(authorization.as_deref().map(|value| (header::AUTHORIZATION, value)));
        if let Some(client) = &mut self.client
            && let Ok(answer) = client.start_with(Method::GET, path, &headers, Bytes::new()).await
        {
            return Ok(answer);
        }
        let client = self.client.insert(Client::connect(target, *protocol).await?);
        client.start_with(Method::GET, path, &headers, Bytes::new()).await
    }

    async fn watch(&mut self, answer: Response<Incoming>) -> Aftermath {
        let mut body = SkippedBody::new(is_gzip(&answer));
        let mut stream = answer.into_body();
        let ended = loop {
            let data = match stream.frame().await {
                None => return Aftermath::Ended,
                Some(Err(why)) => break broken(&why),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            let (now, mut ended, reflector) = (self.began.elapsed(), None, &mut self.reflector);
            let is_readable = body.lines(&data, |line| match cut::event(line) {
                Ok(event) if ended.is_none() => reflector.event(now, event),
                Ok(_) => {}
                Err(outcome) => ended = ended.take().or(Some(outcome)),
            });
            self.stand(true);
            match ended {
                Some(outcome) => break outcome,
                None if !is_readable => break Aftermath::Undecodable,
                None => {}
            }
        };
        // Over HTTP/1.1 there may be more to come on the connection; over HTTP/2 it may be lost.
        self.client = None;
        ended
    }

    async fn list(&mut self, answer: Response<Incoming>) -> Aftermath {
        let mut body = SkippedBody::new(is_gzip(&answer));
        let mut stream = answer.into_body();
        while let Some(frame) = stream.frame().await {
            match frame {
                Ok(frame) => body.keep(&frame.into_data().unwrap_or_default()),
                // A list that is not whole was not listed.
                Err(_) => {
                    self.client = None;
                    return Aftermath::Failed;
                }
            }
        }
        cut::list(body.head())
    }

    async fn refusal(&mut self, answer: Response<Incoming>) -> Aftermath {
        let code = answer.status().as_u16();
        let named = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = named.and_then(|seconds| seconds.parse().ok());
        let mut text = Vec::new();
        let mut stream = answer.into_body();
        while let Some(Ok(frame)) = stream.frame().await
            && text.len() < STATUS_BYTES
        {
            text.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
        Aftermath::Status { code, retry_after, is_too_large: cut::is_too_large(&text) }
    }

    /// Tells others how far it has come.
    fn stand(&self, is_watching: bool) {
        let revision = self.reflector.revision().parse().unwrap_or(0);
        self.standing.revision.store(revision, Ordering::Relaxed);
        self.standing.is_open.store(is_watching && self.reflector.is_synced(), Ordering::Relaxed);
    }
}

impl From<&Ask> for Purpose {
    fn from(ask: &Ask) -> Purpose {
        match ask {
            Ask::WatchList { .. } => Purpose::WatchList,
            Ask::Watch { .. } => Purpose::Watch,
            Ask::List { .. } => Purpose::List,
        }
    }
}

/// In the order of the alphabet, as client-go writes it.
fn query(ask: &Ask, seconds: u64) -> String {
    let watch = |revision: &str, initial: [&str; 2]| {
        let [matching, events] = initial;
        let revision = optional("resourceVersion", revision);
        // Typed clients say it a second time, for themselves.
        let timeout = format!("&timeout={}m{}s&timeoutSeconds={seconds}", seconds / 60, seconds % 60);
        format!("allowWatchBookmarks=true{revision}{matching}{events}{timeout}&watch=true")
    };
    match ask {
        Ask::Watch { revision } => watch(revision, ["", ""]),
        Ask::WatchList { revision } => {
            watch(revision, ["&resourceVersionMatch=NotOlderThan", "&sendInitialEvents=true"])
        }
        Ask::List { revision, limit, token } => {
            let limit = if *limit == 0 { String::new() } else { format!("&limit={limit}") };
            let all = [optional("continue", token), limit, optional("resourceVersion", revision)].concat();
            all.trim_start_matches('&').to_owned()
        }
    }
}

fn optional(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!("&{name}={value}") }
}

fn is_gzip(answer: &Response<Incoming>) -> bool {
    answer.headers().get(header::CONTENT_ENCODING).is_some_and(|coding| coding == "gzip")
}

/// What became of a request that nobody answered.
fn unanswered(why: &Error) -> Aftermath {
    let text = why.to_string();
    match () {
        () if text.contains("refused") => Aftermath::Refused,
        () if text.contains("stream error") || text.contains("certificate") => Aftermath::Failed,
        () => Aftermath::Lost,
    }
}

/// How a body broke: to client-go the end of one stream is an error, the end of all of them is not.
fn broken(why: &hyper::Error) -> Aftermath {
    let mut source: Option<&dyn std::error::Error> = Some(why);
    while let Some(cause) = source {
        if cause.to_string().contains("stream error") {
            return Aftermath::Undecodable;
        }
        source = cause.source();
    }
    Aftermath::Ended
}
