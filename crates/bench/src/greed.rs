//! A user who asks for more than anybody: lists of everything, readers that stand still, and watches by the
//! thousand.
//!
//! In: a server, and how much. Out: what it was given. It has a thread of its own, so that what it reads does
//! not delay who measures; dropping it ends that, and all its connections. Never: a wait that it was asked
//! for; a body that is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, header};
use tokio::task::JoinSet;

use crate::aside::Aside;
use crate::caller::Caller;
use crate::client::{Client, Protocol, RestConfig};
use crate::hostile::Said;
use crate::hostile::http2::{self, Http2Wire};
use crate::overload::Overload;
use crate::watchers::STREAMS;
use crate::{Error, users};

/// Clients that list, one after the other.
const LISTERS: usize = 16;
/// Between two lists of one that was refused: nobody can ask faster for long.
const BREATH: Duration = Duration::from_millis(10);
/// Longest time for a list, and for a server to answer that many watches.
const LIST_MAX: Duration = Duration::from_secs(60);
const OPEN_MAX: Duration = Duration::from_secs(30);
/// What a reader that stands still has in its kernel.
const NARROW_BYTES: usize = 2_048;
const EVERYTHING: [&str; 2] = ["/api/v1/pods", "/api/v1/pods?resourceVersion=0"];
/// What those ask for that stand still.
const LARGE: &str = "/api/v1/secrets";
const WATCHED: &str = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0";

/// What it was given so far.
#[derive(Debug, Default)]
pub struct Gains {
    pub lists: AtomicUsize,
    pub refused: AtomicUsize,
    /// Lists that had no answer, or not the whole of one.
    pub failed: AtomicUsize,
    pub watches: AtomicUsize,
    /// Readers that stand still and whose answer has begun.
    pub standing: AtomicUsize,
    /// Whether all connections were tried that there are to be.
    pub tried: AtomicUsize,
}

#[derive(Debug)]
pub struct Greed {
    pub gains: Arc<Gains>,
    /// Connections to try, beside those that list.
    pub connections: usize,
    _thread: Aside,
}

impl Greed {
    pub fn start(target: &RestConfig, much: &Overload) -> Result<Greed, Error> {
        let gains = Arc::new(Gains::default());
        let connections = much.standing + much.watches.div_ceil(STREAMS);
        let thread = Aside::start("greed", take(target.clone(), much.clone(), gains.clone()))?;
        Ok(Greed { gains, connections, _thread: thread })
    }

    /// Whether all connections were tried.
    pub fn is_there(&self) -> bool {
        self.gains.tried.load(Ordering::Relaxed) >= self.connections
    }
}

/// Everything at once, until it is dropped.
async fn take(target: RestConfig, much: Overload, gains: Arc<Gains>) {
    let mut all = JoinSet::new();
    for lister in 0..LISTERS {
        all.spawn(list(target.clone(), lister, gains.clone()));
    }
    let mut standing = JoinSet::new();
    for _ in 0..much.standing {
        standing.spawn(stand(target.clone(), gains.clone()));
    }
    let mut left = much.watches;
    while left > 0 {
        let streams = left.min(STREAMS);
        left -= streams;
        all.spawn(watch(target.clone(), streams, gains.clone()));
    }
    // Listers never end, and who stands still stays.
    let _open = standing.join_all().await;
    while all.join_next().await.is_some() {}
}

async fn list(target: RestConfig, lister: usize, gains: Arc<Gains>) {
    let mut caller = Caller::new(target, Protocol::Http2, users::GREEDY);
    loop {
        let counted =
            match caller.skim(EVERYTHING[lister % EVERYTHING.len()], "application/json", LIST_MAX).await {
                Ok((200, _)) => &gains.lists,
                Ok((429, _)) => &gains.refused,
                _ => &gains.failed,
            };
        counted.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(BREATH).await;
    }
}

/// Asks for a large list and reads nothing of it; the connection, to be kept.
async fn stand(
    target: RestConfig,
    gains: Arc<Gains>,
) -> Option<(Client, hyper::Response<hyper::body::Incoming>)> {
    let asked = async {
        let mut client = Client::connect_narrow(&target, NARROW_BYTES).await.ok()?;
        let authorization = format!("Bearer {}", users::GREEDY);
        let headers = [(header::ACCEPT, "application/json"), (header::AUTHORIZATION, authorization.as_str())];
        let answer = client.start_with(Method::GET, LARGE, &headers, Bytes::new()).await.ok()?;
        Some((client, answer))
    };
    let answered = tokio::time::timeout(OPEN_MAX, asked).await.ok().flatten();
    gains.tried.fetch_add(1, Ordering::Relaxed);
    let answered = answered.filter(|(_, answer)| answer.status() == 200)?;
    gains.standing.fetch_add(1, Ordering::Relaxed);
    Some(answered)
}

/// Opens watches on one connection, and stays as long as it does.
async fn watch(target: RestConfig, streams: usize, gains: Arc<Gains>) {
    let wire = Http2Wire::connect(&target, users::GREEDY).await;
    let Ok(mut wire) = wire else {
        gains.tried.fetch_add(1, Ordering::Relaxed);
        return;
    };
    for index in 0..streams {
        let asked = wire.get(http2::stream(index), WATCHED);
        wire.write(&asked).await;
    }
    let tally = wire.hear(streams, OPEN_MAX).await;
    gains.watches.fetch_add(tally.count(Said::Status(200)), Ordering::Relaxed);
    gains.tried.fetch_add(1, Ordering::Relaxed);
    wire.answer_pings().await;
}
