//! Many watchers of pods, and what they get.
//!
//! In: where, and how many. Out: connections that watch, and for each event when it came. Never: an event
//! parsed: a line is counted, its bytes are thrown away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Error;
use crate::client::{Client, Protocol, RestConfig};

/// Watches on one HTTP/2 connection: client-go opens another one beyond, as kube-apiserver takes no more.
pub const STREAMS: usize = 100;

/// Connections that are made at a time.
const DIALS: usize = 32;

/// Open watches. Dropping them closes their connections.
pub struct Watchers {
    pub count: usize,
    pub connections: usize,
    // Each event as it comes.
    came: mpsc::UnboundedReceiver<Came>,
    reading: JoinSet<()>,
    _clients: Vec<Client>,
}

/// An event: by the number of the watcher that has it, and when.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    pub watcher: usize,
    pub at: Instant,
}

impl Watchers {
    /// Opens `count` watches of what `path` says for each of them.
    ///
    /// - `streams`: watches on one connection; 1 over HTTP/1.1.
    pub async fn open(
        target: &RestConfig,
        protocol: Protocol,
        count: usize,
        path: impl Fn(usize) -> String,
    ) -> Result<Watchers, Error> {
        let streams = if protocol == Protocol::Http1 { 1 } else { STREAMS };
        let paths: Vec<String> = (0..count).map(path).collect();
        let numbered = |(at, paths): (usize, &[String])| (at * streams, paths.to_vec());
        let mut waiting: Vec<(usize, Vec<String>)> =
            paths.chunks(streams).enumerate().map(numbered).collect();
        let connections = waiting.len();
        let target = Arc::new(target.clone());
        let (mut dialing, mut reading) = (JoinSet::new(), JoinSet::new());
        let (tell, came) = mpsc::unbounded_channel();
        let mut clients = Vec::new();
        while !waiting.is_empty() || !dialing.is_empty() {
            while dialing.len() < DIALS
                && let Some((first, paths)) = waiting.pop()
            {
                let dialed = dial(target.clone(), protocol, paths);
                dialing.spawn(async move { dialed.await.map(|dialed| (first, dialed)) });
            }
            let Some(dialed) = dialing.join_next().await else { break };
            let (first, (client, bodies)) = dialed.map_err(|e| Error::Connection(e.to_string()))??;
            clients.push(client);
            for (watcher, body) in (first..).zip(bodies) {
                reading.spawn(read(watcher, body, tell.clone()));
            }
        }
        Ok(Watchers { count, connections, came, reading, _clients: clients })
    }

    /// Waits until `count` events have come; how long after `since` each did, sorted.
    ///
    /// # Errors
    /// They did not come in time, or a watch ended.
    pub async fn events(
        &mut self,
        count: usize,
        since: Instant,
        wait: Duration,
    ) -> Result<Vec<Duration>, Error> {
        let mut delays = Vec::with_capacity(count);
        let all = async {
            while delays.len() < count
                && let Some(Came { at, .. }) = self.came.recv().await
            {
                delays.push(at.saturating_duration_since(since));
            }
        };
        let _in_time = tokio::time::timeout(wait, all).await;
        if delays.len() < count {
            let ended = std::iter::from_fn(|| self.reading.try_join_next()).count();
            let answer = format!("{} came in {wait:?}; {ended} watches ended", delays.len());
            return Err(Error::Answer { what: format!("{count} events"), answer });
        }
        delays.sort_unstable();
        Ok(delays)
    }

    /// Waits for the next event of any watcher.
    pub async fn next(&mut self) -> Option<Came> {
        self.came.recv().await
    }
}

async fn dial(
    target: Arc<RestConfig>,
    protocol: Protocol,
    paths: Vec<String>,
) -> Result<(Client, Vec<Incoming>), Error> {
    let mut client = Client::connect(&target, protocol).await?;
    let mut bodies = Vec::with_capacity(paths.len());
    for path in paths {
        let answer = client.start(Method::GET, &path, "application/json", Bytes::new()).await?;
        if answer.status() != 200 {
            return Err(Error::Answer { what: "watch".into(), answer: answer.status().to_string() });
        }
        bodies.push(answer.into_body());
    }
    Ok((client, bodies))
}

/// Tells of each line, until the watch ends.
async fn read(watcher: usize, mut body: Incoming, tell: mpsc::UnboundedSender<Came>) {
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let at = Instant::now();
        for _ in data.iter().filter(|byte| **byte == b'\n') {
            // Nobody listens any more when the scenario is over.
            let _ = tell.send(Came { watcher, at });
        }
    }
}
