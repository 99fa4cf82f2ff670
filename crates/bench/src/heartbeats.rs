//! The heartbeats of nodes: each renews its Lease every ten seconds, on a connection of its own.
//!
//! In: where, and how many. Out: how long each took since it was due, what was tried again included. A thread
//! of its own sends them: who reads much does not delay them. Never: a heartbeat that is left out because it
//! failed.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::JoinSet;

use crate::aside::Aside;
use crate::caller::Caller;
use crate::client::{Protocol, RestConfig};
use crate::load::percentile;
use crate::pending::Pending;
use crate::{Error, users};

/// A kubelet's: it renews so often, and gives up a try after as long.
pub const EVERY: Duration = Duration::from_secs(10);
/// A kubelet tries so often in a row, and then after a wait.
const AT_ONCE: usize = 5;
const AGAIN: Duration = Duration::from_millis(200);
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// Those of a span of time.
#[derive(Clone, Debug, Default)]
pub struct Beats {
    pub count: usize,
    /// Given up when the next was due.
    pub missed: usize,
    /// Sorted; what is under way counts with what it took so far.
    latencies: Vec<Duration>,
}

#[derive(Debug)]
pub struct Heartbeats {
    log: Arc<Pending>,
    _thread: Aside,
}

impl Heartbeats {
    /// Starts `nodes` of them, spread over [`EVERY`].
    pub fn start(target: &RestConfig, nodes: usize) -> Result<Heartbeats, Error> {
        let log = Arc::<Pending>::default();
        let (target, beats) = (target.clone(), log.clone());
        let beat_all = async move {
            let begin = Instant::now();
            let mut beating = JoinSet::new();
            for node in 0..nodes {
                let first = begin + EVERY * node as u32 / nodes as u32;
                beating.spawn(beat(target.clone(), node, first, beats.clone()));
            }
            // They never end by themselves.
            while beating.join_next().await.is_some() {}
        };
        Ok(Heartbeats { log, _thread: Aside::start("heartbeats", beat_all)? })
    }

    /// Those that were due from `begin` on, before `end`.
    pub fn span(&self, begin: Instant, end: Instant) -> Beats {
        Beats::of(self.log.span(begin, end, Instant::now()))
    }
}

impl Beats {
    fn of(latencies: Vec<Duration>) -> Beats {
        let missed = latencies.iter().filter(|took| **took >= EVERY).count();
        Beats { count: latencies.len(), missed, latencies }
    }

    pub fn latency(&self, share: f64) -> Duration {
        percentile(&self.latencies, share)
    }
}

/// One node: makes its Lease and renews it.
async fn beat(target: RestConfig, node: usize, first: Instant, log: Arc<Pending>) {
    let mut caller = Caller::new(target, Protocol::Http2, &format!("{}{node}", users::NODE));
    let name = format!("{}{node}", users::NODE);
    let path = format!("{LEASES}/{name}");
    let lease = format!(
        r#"{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{name}"}},"spec":{{"holderIdentity":"{name}","leaseDurationSeconds":40}}}}"#
    );
    let mut due = first;
    let mut is_made = false;
    loop {
        tokio::time::sleep_until(due.into()).await;
        let number = log.begin(due);
        let mut tries = 0;
        let took = loop {
            let left = (due + EVERY).saturating_duration_since(Instant::now());
            if left.is_zero() {
                break EVERY;
            }
            let answer = match is_made {
                true => caller.patch(&path, renewal(), left).await,
                false => caller.post(LEASES, lease.clone(), left).await,
            };
            match answer.map(|answer| answer.status) {
                Ok(200) => break due.elapsed(),
                Ok(201 | 409) if !is_made => {
                    // That it was made is no heartbeat yet.
                    is_made = true;
                    continue;
                }
                _ if tries < AT_ONCE => {}
                _ => tokio::time::sleep(AGAIN.min(left)).await,
            }
            tries += 1;
        };
        log.end(number, took);
        due += EVERY;
    }
}

/// A patch with the time of day, in microseconds, as Kubernetes writes it: only that it changes matters.
fn renewal() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (minutes, micros) = (since.as_secs() / 60 % 60, since.as_micros() % 60_000_000);
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    format!(r#"{{"spec":{{"renewTime":"2026-01-01T00:{minutes:02}:{seconds:02}.{micros:06}Z"}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_took_until_the_next_was_due_were_missed() {
        let span = Beats::of(vec![Duration::from_millis(5), Duration::from_millis(9), EVERY]);
        assert_eq!((span.count, span.missed), (3, 1));
        assert_eq!((span.latency(0.5), span.latency(0.99)), (Duration::from_millis(9), EVERY));
    }
}
