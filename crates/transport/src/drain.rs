//! The server's shutdown in order: it is no longer ready; then it refuses new requests, connections are told
//! to go one after another, and watches end after them, while requests in flight may finish.
//!
//! In: the word to leave, and that a watch's connection goes. Out: for each watch the moment at which it
//! ends, or may end. Watches end at a limited rate, so that their clients do not all come to the next server
//! at once. Never: closes a connection.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use forebay_rt::{Alarm, Clock, Instant, Raised, Shutdown, Stagger};

use crate::limits;

/// How far the shutdown has come. Cheap to clone.
#[derive(Clone)]
pub struct Drain(Arc<Inner>);

struct Inner {
    clock: Clock,
    /// The time over which watches are ended.
    grace: Duration,
    /// The server was told to stop: it is not ready any more, and still serves everything.
    leaving: Shutdown,
    /// New requests are refused.
    draining: Shutdown,
    // Watches that are open.
    watches: AtomicU64,
    // How many watches were open when the first of them was ended, and when that was.
    watches_then: AtomicU64,
    began: OnceLock<Instant>,
    // Spaces the ends of watches out.
    turns: Stagger,
}

/// What a watch is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchTurn {
    /// Its connection goes: it ends soon if that costs its client nothing. Said once.
    Go,
    /// The server ends: so does this watch, now.
    End,
}

/// An open watch, counted until dropped.
pub struct WatchSlot {
    drain: Drain,
    // That its connection goes; and once it does, or where it cannot go before the watch ends, that the
    // server ends.
    told: Raised,
    next: Next,
    alarm: Alarm,
}

/// What comes next for a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Its connection goes some day, or the server ends.
    Told,
    /// The server ends some day.
    Draining,
    End {
        at: Instant,
    },
}

impl Drain {
    /// - `grace`: the time over which all watches end; zero leaves it to the server.
    pub fn new(clock: Clock, grace: Duration) -> Drain {
        Drain(Arc::new(Inner {
            clock,
            grace: if grace.is_zero() { limits::WATCH_ENDS_WAIT } else { grace },
            leaving: Shutdown::default(),
            draining: Shutdown::default(),
            watches: AtomicU64::new(0),
            watches_then: AtomicU64::new(0),
            began: OnceLock::new(),
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
        self.0.began.get_or_init(|| self.0.clock.now());
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

    /// How long connections may take to end: long enough for requests in flight to finish, and for the last
    /// watch to end.
    pub fn wait(&self) -> Duration {
        limits::DRAIN_WAIT.max(self.0.grace + limits::DRAIN_WAIT / 2)
    }

    /// Within how long all connections are told to go: half of the time in which watches end, as these end
    /// after their connections were told.
    pub fn goodbyes(&self) -> Duration {
        self.0.grace / 2
    }

    /// Watches that are open.
    pub fn watches(&self) -> u64 {
        self.0.watches.load(Ordering::Relaxed)
    }

    /// When the next watch ends: at a fixed rate, or faster if there is not enough time for all.
    fn next_turn(&self) -> Instant {
        let inner = &self.0;
        // Not later because its connection was told late.
        let began = *inner.began.get_or_init(|| inner.clock.now());
        began + inner.turns.next_within(inner.watches_then.load(Ordering::Relaxed), inner.grace)
    }

    /// Counts a watch.
    ///
    /// - `going`: raised when its connection is told to go; none where its client would come back on the same
    ///   connection.
    pub fn watch(&self, going: Option<&Shutdown>) -> WatchSlot {
        self.0.watches.fetch_add(1, Ordering::Relaxed);
        let (told, next) = match going {
            Some(going) => (going.watch(), Next::Told),
            None => (self.0.draining.watch(), Next::Draining),
        };
        WatchSlot { drain: self.clone(), told, next, alarm: Alarm::default() }
    }
}

impl WatchSlot {
    /// Ready when it is this watch's turn to end, and once when its connection goes.
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<WatchTurn> {
        loop {
            match self.next {
                Next::End { at } => return self.alarm.poll_rings(at, cx).map(|()| WatchTurn::End),
                Next::Told => {
                    ready!(self.told.poll(cx));
                    self.told = self.drain.0.draining.watch();
                    self.next = Next::Draining;
                    if !self.drain.is_draining() {
                        return Poll::Ready(WatchTurn::Go);
                    }
                    let earliest = self.drain.0.clock.now() + limits::GOODBYE_PAUSE;
                    self.next = Next::End { at: self.drain.next_turn().max(earliest) };
                }
                Next::Draining => {
                    ready!(self.told.poll(cx));
                    self.next = Next::End { at: self.drain.next_turn() };
                }
            }
        }
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
        let going = Shutdown::for_few();
        let mut slots = [drain.watch(None), drain.watch(Some(&going))];
        drain.leave();
        assert!(drain.is_leaving() && !drain.is_draining());
        drain.begin();
        assert_eq!(std::future::poll_fn(|cx| slots[0].poll_turn(cx)).await, WatchTurn::End);
        let waits = std::future::poll_fn(|cx| Poll::Ready(slots[1].poll_turn(cx))).await;
        assert!(waits.is_pending(), "not before its connection goes");
        going.raise();
        assert_eq!(std::future::poll_fn(|cx| slots[1].poll_turn(cx)).await, WatchTurn::End);
        drop(slots);
        assert_eq!(drain.watches(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_told_once_that_its_connection_goes_and_ends_with_the_server() {
        let (drain, going) = (Drain::new(Clock::system(), Duration::ZERO), Shutdown::for_few());
        let mut slot = drain.watch(Some(&going));
        going.raise();
        assert_eq!(std::future::poll_fn(|cx| slot.poll_turn(cx)).await, WatchTurn::Go);
        assert!(std::future::poll_fn(|cx| Poll::Ready(slot.poll_turn(cx))).await.is_pending());
        drain.begin();
        assert_eq!(std::future::poll_fn(|cx| slot.poll_turn(cx)).await, WatchTurn::End);
    }
}
