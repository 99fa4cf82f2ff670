//! Leaving: readiness goes first, then new requests are refused, watches end one after another, and what is in flight
//! may finish.
//!
//! In: that it is time. Out: for each watch the moment at which it ends. Watches end at a limited rate so that their
//! clients do not all arrive at the next server at once. Never: closes a connection itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use forebay_rt::{Alarm, Clock, Instant, Raised, Shutdown, Stagger};

use crate::limits;

/// How far the server's leaving has come. Cheap to clone.
#[derive(Clone)]
pub struct Drain(Arc<Inner>);

struct Inner {
    clock: Clock,
    /// Watches are ended over this time.
    grace: Duration,
    /// Told to stop: not ready any more, and everything still served.
    leaving: Shutdown,
    /// New requests are refused.
    draining: Shutdown,
    // Watches that are open.
    watches: AtomicU64,
    // How many watches there were when the drain began to end them.
    watches_then: AtomicU64,
    // Spaces the ends of watches.
    turns: Stagger,
}

/// An open watch, counted until dropped.
pub struct WatchSlot {
    drain: Drain,
    draining: Raised,
    // When its turn is, once that is known.
    turn_at: Option<Instant>,
    alarm: Alarm,
}

impl Drain {
    /// - `grace`: how long watches may take to end, all together; zero leaves it to the server.
    pub fn new(clock: Clock, grace: Duration) -> Drain {
        Drain(Arc::new(Inner {
            clock,
            grace: if grace.is_zero() { limits::WATCH_ENDS_WAIT } else { grace },
            leaving: Shutdown::default(),
            draining: Shutdown::default(),
            watches: AtomicU64::new(0),
            watches_then: AtomicU64::new(0),
            turns: Stagger::default(),
        }))
    }

    /// From now on the server is not ready.
    pub fn leave(&self) {
        self.0.leaving.raise();
    }

    /// From now on new requests are refused and watches end.
    pub fn begin(&self) {
        self.0.leaving.raise();
        self.0.watches_then.store(self.watches(), Ordering::Relaxed);
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

    /// How long connections may take to end: what is in flight may finish, and the last watch is told that it is over.
    pub fn wait(&self) -> Duration {
        limits::DRAIN_WAIT.max(self.0.grace + limits::DRAIN_WAIT / 2)
    }

    /// Watches that are open.
    pub fn watches(&self) -> u64 {
        self.0.watches.load(Ordering::Relaxed)
    }

    /// When the next watch ends: at a fixed rate, or faster if there is not enough time for all.
    fn next_turn(&self) -> Instant {
        let inner = &self.0;
        inner.clock.now() + inner.turns.next_within(inner.watches_then.load(Ordering::Relaxed), inner.grace)
    }

    /// Counts a watch.
    pub fn watch(&self) -> WatchSlot {
        self.0.watches.fetch_add(1, Ordering::Relaxed);
        let draining = self.0.draining.watch();
        WatchSlot { drain: self.clone(), draining, turn_at: None, alarm: Alarm::default() }
    }
}

impl WatchSlot {
    /// Ready when it is this watch's turn to end.
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.draining.poll(cx));
        let at = *self.turn_at.get_or_insert_with(|| self.drain.next_turn());
        self.alarm.poll_rings(at, cx)
    }
}

impl Drop for WatchSlot {
    fn drop(&mut self) {
        self.drain.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn watches_end_at_the_rate() {
        let clock = Clock::system();
        for (ticket, all, grace_ms, ms) in [
            (0, 1, 5_000, 0),
            (200, 300, 5_000, 1_000),
            (999, 1_000, 5_000, 4_995),
            (40_000, 50_000, 5_000, 4_000),
            (40_000, 50_000, 100_000, 80_000),
            (2_999, 3_000, 60_000, 14_995),
            (7, 10, 1, 0),
            (u64::MAX, 10, 5_000, 5_000),
        ] {
            let wait = Stagger::wait_within(ticket, all, Duration::from_millis(grace_ms));
            assert_eq!(wait, Duration::from_millis(ms), "{ticket} of {all} in {grace_ms} ms");
        }
        let drain = Drain::new(clock, Duration::ZERO);
        let mut slots = [drain.watch(), drain.watch()];
        drain.leave();
        assert!(drain.is_leaving() && !drain.is_draining());
        drain.begin();
        for slot in &mut slots {
            std::future::poll_fn(|cx| slot.poll_turn(cx)).await;
        }
        drop(slots);
        assert_eq!(drain.watches(), 0);
    }
}
