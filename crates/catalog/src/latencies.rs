//! Where the time of a request goes, as an audit log tells it of one that took long.
//!
//! In: the beginning and the end of a part of its work. Out: how long each part took, in the names of
//! kube-apiserver's annotations. Never: costs anything where nobody asks; decides what is long.
//!
//! Source: apiserver v0.36.3 `pkg/endpoints/request/webhook_duration.go`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_rt::{Clock, Duration, Instant};

use crate::AuditAnnotations;

/// A part of the work on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedPart {
    Authentication,
    Authorization,
    Impersonation,
    QueueWait,
    MutatingWebhook,
    ValidatingWebhook,
    /// What is written, be it on an etcd or not.
    Store,
}

/// How long each took.
#[derive(Debug, Default)]
pub struct Latencies {
    clock: Clock,
    nanos: [AtomicU64; TimedPart::ALL.len()],
}

/// A part that goes on until this is dropped.
#[derive(Debug)]
pub struct Timing {
    of: Arc<AuditAnnotations>,
    part: TimedPart,
    began: Instant,
}

impl TimedPart {
    const ALL: [TimedPart; 7] = [
        TimedPart::Authentication,
        TimedPart::Authorization,
        TimedPart::Impersonation,
        TimedPart::QueueWait,
        TimedPart::MutatingWebhook,
        TimedPart::ValidatingWebhook,
        TimedPart::Store,
    ];

    const fn key(self) -> &'static str {
        match self {
            TimedPart::Authentication => "apiserver.latency.k8s.io/authentication",
            TimedPart::Authorization => "apiserver.latency.k8s.io/authorization",
            TimedPart::Impersonation => "apiserver.latency.k8s.io/impersonation",
            TimedPart::QueueWait => "apiserver.latency.k8s.io/apf-queue-wait",
            TimedPart::MutatingWebhook => "apiserver.latency.k8s.io/mutating-webhook",
            TimedPart::ValidatingWebhook => "apiserver.latency.k8s.io/validating-webhook",
            TimedPart::Store => "apiserver.latency.k8s.io/etcd",
        }
    }

    /// Whether the longest counts, and not the sum: several go on at once, or only one of them counts.
    const fn counts_longest(self) -> bool {
        matches!(self, TimedPart::Authorization | TimedPart::QueueWait | TimedPart::ValidatingWebhook)
    }
}

impl Latencies {
    pub fn new(clock: Clock) -> Latencies {
        Latencies { clock, ..Latencies::default() }
    }

    pub fn took(&self, part: TimedPart, time: Duration) {
        let (known, nanos) = (&self.nanos[part as usize], time.as_nanos().try_into().unwrap_or(u64::MAX));
        match part.counts_longest() {
            true => known.fetch_max(nanos, Ordering::Relaxed),
            false => known.fetch_add(nanos, Ordering::Relaxed),
        };
    }

    /// What took any time, by the keys of its annotations.
    pub fn all(&self) -> Vec<(&'static str, Duration)> {
        let time = |part: TimedPart| Duration::from_nanos(self.nanos[part as usize].load(Ordering::Relaxed));
        let all = TimedPart::ALL.into_iter().map(|part| (part.key(), time(part)));
        all.filter(|(_, time)| !time.is_zero()).collect()
    }
}

impl Timing {
    pub fn begin(of: &Arc<AuditAnnotations>, part: TimedPart) -> Timing {
        Timing { of: of.clone(), part, began: of.latencies.clock.now() }
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        let latencies = &self.of.latencies;
        latencies.took(self.part, latencies.clock.now().duration_since(self.began));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn parts_that_follow_each_other_are_added_and_of_others_the_longest_counts() {
        let (clock, _) = Clock::manual(0);
        let of = Arc::new(AuditAnnotations::new(false, clock.clone()));
        for seconds in [1, 3, 2] {
            let (store, webhook) =
                (Timing::begin(&of, TimedPart::Store), Timing::begin(&of, TimedPart::ValidatingWebhook));
            clock.sleep(Duration::from_secs(seconds)).await;
            drop((store, webhook));
        }
        let told = [
            ("apiserver.latency.k8s.io/validating-webhook", Duration::from_secs(3)),
            ("apiserver.latency.k8s.io/etcd", Duration::from_secs(6)),
        ];
        assert_eq!(of.latencies.all(), told);
    }
}
