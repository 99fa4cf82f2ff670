//! What was due, and how long it took since: what is still under way counts with what it took so far.
//!
//! In: beginnings and ends, from many tasks. Out: the times of a span. One lock, held for a push. Never: a
//! slow one that is left out because it has not ended.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Since when, and how long, once it has ended.
#[derive(Debug, Default)]
pub struct Pending(Mutex<Vec<(Instant, Option<Duration>)>>);

impl Pending {
    /// One is due; its number.
    pub fn begin(&self, due: Instant) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((due, None));
        all.len() - 1
    }

    pub fn end(&self, number: usize, took: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[number].1 = Some(took);
    }

    /// Those that were due from `begin` on, before `end`, sorted by how long they took until `now`.
    pub fn span(&self, begin: Instant, end: Instant, now: Instant) -> Vec<Duration> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let within = all.iter().filter(|(due, _)| (begin..end).contains(due));
        let took = |(due, took): &(Instant, Option<Duration>)| {
            took.unwrap_or_else(|| now.saturating_duration_since(*due))
        };
        let mut times: Vec<Duration> = within.map(took).collect();
        times.sort_unstable();
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_ended_counts_with_what_it_took_so_far() {
        let (pending, begin) = (Pending::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        for due in [0, 1, 9] {
            pending.begin(at(due));
        }
        pending.end(1, Duration::from_secs(3));
        let seconds = [3, 5].map(Duration::from_secs);
        assert_eq!(pending.span(begin, at(9), at(5)), seconds);
    }
}
