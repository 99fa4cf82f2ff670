//! The storm: many clients that LIST all objects at once, each on its own connection, and what came back.
//!
//! In: a ready server with its objects. Out: [`Storm`]: bytes, time, CPU, and how many lists failed in which
//! way. Bodies are read to their end and dropped as they come: the client keeps no list. No retry. Never: a
//! list counted as whole that was not.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client::{Client, Protocol, RestConfig};
use crate::lab::Lab;
use crate::load::percentile;
use crate::server::Instance;
use crate::{Error, proc};

/// From the watch cache, as informers start; and consistent, as `kubectl get` asks.
const QUERIES: [&str; 2] = ["?resourceVersion=0", ""];
/// Longest wait for a whole list; kube-apiserver itself gives up after 60 s.
const LIST_MAX: Duration = Duration::from_secs(180);

/// What the lists took.
#[derive(Debug, Default)]
pub struct Storm {
    pub took: Duration,
    /// Sorted; one for each whole list, from the request to the end of the body.
    pub latencies: Vec<Duration>,
    /// Bytes of the bodies of whole lists.
    pub returned: u64,
    /// Refused with 429.
    pub refused: usize,
    /// Answered with another status than 200 or 429.
    pub other_status: usize,
    /// Not connected, cut off before the end, or too late.
    pub reset: usize,
    /// What the first failure said.
    pub first_failure: Option<String>,
    /// CPU time of each process, in the order of `Instance::processes`.
    pub server_cpu: Vec<Duration>,
    pub client_cpu: Duration,
}

/// How one list ended.
#[derive(Debug)]
enum Ended {
    Whole { bytes: u64, took: Duration },
    Status(u16),
    Reset(Error),
}

/// Times that all clients LIST at once.
pub fn waves(lab: &Lab) -> usize {
    lab.rounds * QUERIES.len()
}

/// Lets every client LIST: all at once, and again once all are done; in each round first from the cache, then
/// consistent.
///
/// - `least`: bytes that a list of all objects has at the very least.
///
/// # Errors
/// [`Error::Answer`] when a list that ended well had less than `least`, or when none ended well.
pub async fn storm(lab: &Lab, server: &Instance, least: usize) -> Result<Storm, Error> {
    let queries: Vec<&str> = (0..lab.rounds).flat_map(|_| QUERIES).collect();
    lists(lab, server, least, &queries).await
}

/// [`storm`], once, from the cache.
pub async fn wave(lab: &Lab, server: &Instance, least: usize) -> Result<Storm, Error> {
    lists(lab, server, least, &QUERIES[..1]).await
}

async fn lists(lab: &Lab, server: &Instance, least: usize, queries: &[&str]) -> Result<Storm, Error> {
    let mut clients = Vec::new();
    for _ in 0..lab.listers {
        clients.push(Some(Client::connect(&server.target, lab.protocol).await?));
    }
    let (server_before, client_before) = (server.cpus()?, proc::cpu_self()?);
    let mut storm = Storm::default();
    let start = Instant::now();
    for query in queries {
        let mut running = JoinSet::new();
        for client in clients.drain(..) {
            let path = format!("{}{query}", lab.objects.path());
            running.spawn(list_once(client, server.target.clone(), lab.protocol, path));
        }
        while let Some(ended) = running.join_next().await {
            let (client, ended) = ended.map_err(|e| Error::Connection(e.to_string()))?;
            clients.push(client);
            storm.count(ended);
        }
    }
    storm.took = start.elapsed();
    storm.client_cpu = proc::cpu_self()?.saturating_sub(client_before);
    storm.server_cpu = server.cpu_since(&server_before)?;
    storm.latencies.sort_unstable();
    storm.plausible(least)?;
    Ok(storm)
}

impl Storm {
    pub fn whole(&self) -> usize {
        self.latencies.len()
    }

    pub fn failed(&self) -> usize {
        self.refused + self.other_status + self.reset
    }

    /// The latency that `share` of the whole lists did not exceed.
    pub fn latency(&self, share: f64) -> Duration {
        percentile(&self.latencies, share)
    }

    fn count(&mut self, ended: Ended) {
        let failure = match ended {
            Ended::Whole { bytes, took } => {
                self.returned += bytes;
                self.latencies.push(took);
                return;
            }
            Ended::Status(status) => {
                let counter = if status == 429 { &mut self.refused } else { &mut self.other_status };
                *counter += 1;
                format!("status {status}")
            }
            Ended::Reset(why) => {
                self.reset += 1;
                why.to_string()
            }
        };
        self.first_failure.get_or_insert(failure);
    }

    fn plausible(&self, least: usize) -> Result<(), Error> {
        let whole = self.whole() as u64;
        if whole > 0 && self.returned >= whole * least as u64 {
            return Ok(());
        }
        let failure = self.first_failure.as_deref().unwrap_or("none failed");
        Err(Error::Answer {
            what: format!("{whole} lists were whole"),
            answer: format!(
                "{} bytes in all, where each has at least {least}; first failure: {failure}",
                self.returned
            ),
        })
    }
}

/// One list; a client that lost its connection makes a new one first.
async fn list_once(
    client: Option<Client>,
    target: RestConfig,
    protocol: Protocol,
    path: String,
) -> (Option<Client>, Ended) {
    let start = Instant::now();
    let listed = timeout(LIST_MAX, async {
        let mut client = match client {
            Some(client) => client,
            None => Client::connect(&target, protocol).await?,
        };
        let (status, bytes) = read(&mut client, &path).await?;
        Ok((client, status, bytes))
    });
    match listed.await {
        Ok(Ok((client, 200, bytes))) => (Some(client), Ended::Whole { bytes, took: start.elapsed() }),
        Ok(Ok((client, status, _))) => (Some(client), Ended::Status(status)),
        Ok(Err(why)) => (None, Ended::Reset(why)),
        Err(_) => (None, Ended::Reset(Error::Connection(format!("no whole list within {LIST_MAX:?}")))),
    }
}

/// The status, and how many bytes the body had.
async fn read(client: &mut Client, path: &str) -> Result<(u16, u64), Error> {
    let response = client.start(Method::GET, path, "application/json", Bytes::new()).await?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Error::Connection(e.to_string()))?;
        bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok((status, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: u64) -> Ended {
        Ended::Whole { bytes, took: Duration::from_millis(1) }
    }

    #[test]
    fn failures_are_counted_by_kind_and_the_first_is_kept() {
        let mut storm = Storm::default();
        let reset = Ended::Reset(Error::Connection("cut".into()));
        for ended in [whole(100), Ended::Status(429), Ended::Status(504), Ended::Status(429), reset] {
            storm.count(ended);
        }
        assert_eq!((storm.whole(), storm.refused, storm.other_status, storm.reset), (1, 2, 1, 1));
        assert_eq!((storm.failed(), storm.returned), (4, 100));
        assert_eq!(storm.first_failure.as_deref(), Some("status 429"));
    }

    #[test]
    fn a_storm_without_a_whole_list_or_with_short_ones_has_no_figures() {
        let mut storm = Storm::default();
        assert!(storm.plausible(0).is_err());
        storm.count(whole(100));
        assert!(storm.plausible(100).is_ok());
        let why = storm.plausible(101).unwrap_err().to_string();
        assert!(why.contains("100 bytes in all, where each has at least 101"), "{why}");
    }
}
