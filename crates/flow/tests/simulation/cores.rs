//! Time of cores, shared by all that run.
//!
//! In: who runs, how much each needs, and how much time passes. Out: who is done, and when the next one is.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_flow::Moment;

/// Time of cores, shared by all that run: each has `attained` so much since the beginning.
pub struct Cores {
    cores: f64,
    /// What every further request that runs costs all others: caches, locks, the scheduler.
    thrash: f64,
    attained: f64,
    at: Moment,
    // (attained at its end, id)
    running: BTreeMap<(u64, u64), ()>,
}

impl Cores {
    /// - `thrash`: see [`Cores`].
    pub fn new(cores: u64, thrash: f64, now: Moment) -> Cores {
        Cores { cores: cores as f64, thrash, attained: 0.0, at: now, running: BTreeMap::new() }
    }

    fn rate(&self) -> f64 {
        let running = self.running.len() as f64;
        (self.cores / running.max(1.0)).min(1.0) / (1.0 + self.thrash * (running - self.cores).max(0.0))
    }

    /// Time passes.
    pub fn advance(&mut self, now: Moment) {
        self.attained += (now - self.at).as_nanos() as f64 * self.rate();
        self.at = now;
    }

    /// One who is done by now.
    pub fn done(&mut self) -> Option<u64> {
        let ((end, id), ()) = self.running.first_key_value()?;
        let (is_done, id) = (*end as f64 <= self.attained, *id);
        is_done.then(|| {
            self.running.pop_first();
            id
        })
    }

    /// Somebody runs from now on, and needs so much.
    pub fn begin(&mut self, id: u64, cpu: Duration) {
        self.running.insert((self.attained as u64 + cpu.as_nanos() as u64, id), ());
    }

    /// When the next one is done.
    pub fn next_end(&self) -> Option<Moment> {
        let ((end, _), ()) = self.running.first_key_value()?;
        let left = (*end as f64 - self.attained).max(0.0) / self.rate();
        Some(self.at + Duration::from_nanos(left.ceil() as u64 + 1))
    }
}
