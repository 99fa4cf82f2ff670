//! What a queue has done and is doing, as plain numbers.
//!
//! In: spans of time. Out: [`Metrics`], a copy at one moment. Never: registers itself anywhere, keeps a label
//! a key.

use forebay_rt::Duration;

use super::limits::SPAN_BUCKETS;

/// A queue's numbers at one moment. Those named in the past tense or as a total only grow; the others go up
/// and down.
///
/// Source: client-go `util/workqueue/metrics.go`, whose names stand behind each field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Keys there is work for: those ready, and those added again while they are worked on. (`depth`)
    pub depth: usize,
    /// Keys that a worker would be given now.
    pub ready: usize,
    /// Keys to be added later. One of them may be ready or worked on as well.
    pub waiting: usize,
    /// Keys that are worked on.
    pub busy: usize,
    /// Adds that made work, without those that found the key added already. (`adds_total`)
    pub adds: u64,
    /// Adds that were to come later, whether after a failure or not. (`retries_total`)
    pub retries: u64,
    /// From an add, or the time it was due, to a worker. (`queue_duration_seconds`)
    pub latency: Spans,
    /// From a worker's taking a key to its being done. (`work_duration_seconds`)
    pub work: Spans,
    /// All the time that what is worked on now has been worked on. (`unfinished_work_seconds`)
    pub unfinished: Duration,
    /// How long that has been worked on that was taken first. (`longest_running_processor_seconds`)
    pub longest_running: Duration,
    /// Reconciles that panicked, in [`super::run_workers`].
    pub panics: u64,
}

/// Spans of time, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// How many there were.
    pub count: u64,
    /// All of them together.
    pub total: Duration,
    /// The longest one.
    pub longest: Duration,
    /// How many were at most as long as the same place of [`SPAN_BUCKETS`] says, and longer than the one
    /// before; last those that were longer than all.
    pub buckets: [u64; SPAN_BUCKETS.len() + 1],
}

impl Spans {
    pub(super) fn note(&mut self, span: Duration) {
        self.count += 1;
        self.total = self.total.saturating_add(span);
        self.longest = self.longest.max(span);
        self.buckets[SPAN_BUCKETS.partition_point(|end| *end < span)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_counted_in_the_first_bucket_that_reaches_it() {
        for (span, bucket) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(10), 0),
            (Duration::from_nanos(11), 1),
            (Duration::from_millis(5), 6),
            (Duration::from_secs(1_000), 11),
            (Duration::from_secs(1_001), 12),
        ] {
            let mut spans = Spans::default();
            spans.note(span);
            assert_eq!(spans.buckets.iter().position(|count| *count == 1), Some(bucket), "{span:?}");
            assert_eq!((spans.count, spans.total, spans.longest), (1, span, span));
        }
    }
}
