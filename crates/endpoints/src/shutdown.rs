//! Leaving: readiness goes first, then new requests are refused, watches end one after another, and what is in flight
//! may finish.
//!
//! In: that it is time. Out: for each watch the moment at which it ends. Watches end at a limited rate so that their
//! clients do not all arrive at the next server at once. Never: closes a connection itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_rt::{Clock, Instant, Shutdown};

use crate::limits;

/// How far the server's leaving has come. Cheap to clone.
#[derive(Clone)]
pub struct Drain(Arc<Inner>);

struct Inner {
    clock: Clock,
    /// Told to stop: not ready any more, and everything still served.
    leaving: Shutdown,
    /// New requests are refused.
    draining: Shutdown,
    // Watches that are open.
    watches: AtomicU64,
    // Places in the queue of watches that end.
    tickets: AtomicU64,
}

/// An open watch, counted until dropped.
pub struct WatchSlot(Drain);

impl Drain {
    pub fn new(clock: Clock) -> Drain {
        Drain(Arc::new(Inner {
            clock,
            leaving: Shutdown::default(),
            draining: Shutdown::default(),
            watches: AtomicU64::new(0),
            tickets: AtomicU64::new(0),
        }))
    }

    /// From now on the server is not ready.
    pub fn leave(&self) {
        self.0.leaving.raise();
    }

    /// From now on new requests are refused and watches end.
    pub fn begin(&self) {
        self.0.leaving.raise();
        self.0.draining.raise();
    }

    pub fn is_leaving(&self) -> bool {
        self.0.leaving.is_raised()
    }

    pub fn is_draining(&self) -> bool {
        self.0.draining.is_raised()
    }

    /// Waits until new requests are refused. Cancel-safe.
    pub async fn draining(&self) {
        self.0.draining.raised().await;
    }

    /// Watches that are open.
    pub fn watches(&self) -> u64 {
        self.0.watches.load(Ordering::Relaxed)
    }

    /// Counts a watch.
    pub fn watch(&self) -> WatchSlot {
        self.0.watches.fetch_add(1, Ordering::Relaxed);
        WatchSlot(self.clone())
    }
}

impl WatchSlot {
    /// Waits until it is this watch's turn to end.
    pub async fn turn(&self) {
        let inner = &self.0.0;
        inner.draining.raised().await;
        let ticket = inner.tickets.fetch_add(1, Ordering::Relaxed);
        let all = ticket + inner.watches.load(Ordering::Relaxed);
        inner.clock.sleep_until(turn_at(inner.clock.now(), ticket, all)).await;
    }
}

impl Drop for WatchSlot {
    fn drop(&mut self) {
        self.0.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// When the watch with this ticket of about `all` ends: at a fixed rate, or faster if there is not enough time for all.
fn turn_at(now: Instant, ticket: u64, all: u64) -> Instant {
    // Half of the grace, so that the last one is gone before connections are cut.
    let grace = limits::DRAIN_WAIT / 2;
    let rate = limits::WATCH_ENDS_PER_SECOND.max(all.div_ceil(grace.as_secs().max(1)));
    now + Duration::from_millis(ticket.saturating_mul(1_000) / rate).min(grace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn watches_end_at_the_rate() {
        let clock = Clock::system();
        let now = clock.now();
        for (ticket, all, ms) in [(0, 1, 0), (200, 300, 1_000), (999, 1_000, 4_995), (40_000, 50_000, 4_000)]
        {
            assert_eq!(turn_at(now, ticket, all) - now, Duration::from_millis(ms), "{ticket} of {all}");
        }
        let drain = Drain::new(clock);
        let (first, second) = (drain.watch(), drain.watch());
        drain.leave();
        assert!(drain.is_leaving() && !drain.is_draining());
        drain.begin();
        first.turn().await;
        second.turn().await;
        drop((first, second));
        assert_eq!(drain.watches(), 0);
    }
}
