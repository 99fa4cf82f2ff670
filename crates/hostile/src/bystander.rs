//! Somebody who means no harm, beside a row: reads a small object, asks `/livez`, and writes as a user
//! without rights, each on a connection of its own, in a thread of its own: a hostile client that is busy
//! does not delay it.
//!
//! In: a server. Out: [`BystanderStats`]. The thread ends when the [`Bystander`] is asked to. Never: a
//! failure passed over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Method, header};
use tokio::time::timeout;

use super::request::REVIEWS;
use super::stage::{self, WATCHED};
use super::tls;
use forebay_contenders::Error;
use forebay_contenders::client::{Client, Protocol, RestConfig};
use forebay_contenders::load::percentile;

/// Who is not answered by then is not answered.
const WAIT: Duration = Duration::from_secs(10);
/// Answers that come before the row begins: connections are open, and caches warm.
const BEFORE: usize = 5;

/// Between two requests of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub reads: Duration,
    pub writes: Duration,
}

/// What a bystander saw.
#[derive(Debug, Default)]
pub struct BystanderStats {
    /// Sorted.
    get: Vec<Duration>,
    livez: Vec<Duration>,
    write: Vec<Duration>,
    /// Requests that were refused, or lost with their connection.
    pub failures: usize,
    pub first_failure: String,
}

#[derive(Debug)]
pub struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<BystanderStats, Error>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Get,
    Livez,
    Write,
}

impl BystanderStats {
    pub fn get_p99(&self) -> Duration {
        percentile(&self.get, 0.99)
    }

    pub fn livez_p99(&self) -> Duration {
        percentile(&self.livez, 0.99)
    }

    pub fn write_p99(&self) -> Duration {
        percentile(&self.write, 0.99)
    }
}

impl Bystander {
    /// Begins, and returns once it has been answered.
    pub fn start(target: &RestConfig, pace: Pace) -> Result<Bystander, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, ready) = std::sync::mpsc::sync_channel(3);
        let (target, until) = (target.clone(), stop.clone());
        // A certificate would come before the token: whoever writes has none.
        let tls = Arc::new(tls::showing(&target.tls, tls::HTTP1, None));
        let without_rights = RestConfig { tls, ..target.clone() };
        let thread = Builder::new()
            .name("bystander".into())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|e| Error::Proc(e.to_string()))?;
                runtime.block_on(async {
                    let one = |target, kind, every| stand(target, kind, every, &until, &told);
                    let (get, livez, write) = tokio::join!(
                        one(&target, Kind::Get, pace.reads),
                        one(&target, Kind::Livez, pace.reads),
                        one(&without_rights, Kind::Write, pace.writes)
                    );
                    Ok(BystanderStats::of(get, livez, write))
                })
            })
            .map_err(|e| Error::Proc(format!("cannot start a thread: {e}")))?;
        for _ in 0..3 {
            // One that ended early has its reason in what it saw.
            let _ = ready.recv_timeout(WAIT);
        }
        Ok(Bystander { stop, thread })
    }

    /// What it saw since.
    pub fn finish(self) -> Result<BystanderStats, Error> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err(Error::Proc("the bystander panicked".into())))
    }
}

#[derive(Default)]
struct One {
    times: Vec<Duration>,
    failures: usize,
    first_failure: String,
}

impl BystanderStats {
    fn of(get: One, livez: One, write: One) -> BystanderStats {
        let failures = get.failures + livez.failures + write.failures;
        let firsts = [&get, &livez, &write].map(|one| one.first_failure.clone());
        let first_failure = firsts.into_iter().find(|why| !why.is_empty()).unwrap_or_default();
        let sorted = |mut times: Vec<Duration>| {
            times.sort_unstable();
            times
        };
        BystanderStats {
            get: sorted(get.times),
            livez: sorted(livez.times),
            write: sorted(write.times),
            failures,
            first_failure,
        }
    }
}

/// One request after the other until it is told to stop; the first ones do not count.
async fn stand(
    target: &RestConfig,
    kind: Kind,
    every: Duration,
    until: &AtomicBool,
    told: &std::sync::mpsc::SyncSender<()>,
) -> One {
    let mut one = One::default();
    let mut client = None;
    let mut answered = 0;
    while answered <= BEFORE || !until.load(Ordering::Relaxed) {
        let start = Instant::now();
        let failure = match timeout(WAIT, ask(&mut client, target, kind)).await {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why.to_string()),
            Err(_) => Some(format!("no answer within {WAIT:?}")),
        };
        let took = start.elapsed();
        answered += 1;
        if answered <= BEFORE {
            if answered == BEFORE {
                // Whoever waited for it may have given up.
                let _ = told.send(());
            }
            continue;
        }
        one.times.push(took);
        if let Some(why) = failure {
            client = None;
            one.failures += 1;
            if one.first_failure.is_empty() {
                one.first_failure = format!("{kind:?}: {why}");
            }
        }
        tokio::time::sleep(every.saturating_sub(took)).await;
    }
    one
}

async fn ask(client: &mut Option<Client>, target: &RestConfig, kind: Kind) -> Result<(), Error> {
    if client.is_none() {
        *client = Some(Client::connect(target, Protocol::Http1).await?);
    }
    let Some(open) = client else { return Ok(()) };
    let (method, path, body) = match kind {
        Kind::Get => (Method::GET, WATCHED, Bytes::new()),
        Kind::Livez => (Method::GET, "/livez", Bytes::new()),
        Kind::Write => (Method::POST, REVIEWS, Bytes::from_static(REVIEW)),
    };
    let token = format!("Bearer {}", stage::BYSTANDER);
    let json = (header::CONTENT_TYPE, "application/json");
    let headers = [json, (header::AUTHORIZATION, token.as_str())];
    let sent = if kind == Kind::Write { &headers[..] } else { &[] };
    let response = open.start_with(method, path, sent, body).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|e| Error::Connection(e.to_string()))?.to_bytes();
    match status {
        200 | 201 => Ok(()),
        other => {
            let text = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            Err(Error::Answer { what: path.to_owned(), answer: format!("{other} {text}") })
        }
    }
}

const REVIEW: &[u8] = br#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
