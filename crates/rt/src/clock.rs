//! Wall time (what `creationTimestamp` says) and monotonic time (what deadlines are made of).
//!
//! Monotonic time is tokio's, which a test pauses; wall time is ours, which a test sets.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::task::coop;
use tokio::time::{Duration, Instant};

use crate::told::Told;

/// Where time comes from. Cheap to clone; every clone of a manual clock shows the same time.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    // Milliseconds since the Unix epoch.
    Manual(Arc<AtomicU64>),
    // Wall time at a moment of monotonic time, with which it goes on.
    Steady {
        unix_ms: u64,
        at: Instant,
    },
}

/// The hand that moves a manual [`Clock`]'s wall time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

/// Rings at a moment that may be moved: one place among the timers, whoever waits how often.
#[derive(Debug, Default)]
pub struct Alarm {
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    // Until when it sleeps, and who is told then: as long as both are so, there is nothing to do before that
    // time.
    until: Option<Instant>,
    told: Told,
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Clock {
        Clock(Source::System)
    }

    /// A clock whose wall time stands still at `unix_ms` until its [`ManualClock`] moves it.
    pub fn manual(unix_ms: u64) -> (Clock, ManualClock) {
        let cell = Arc::new(AtomicU64::new(unix_ms));
        (Clock(Source::Manual(cell.clone())), ManualClock(cell))
    }

    /// A clock that shows `unix_ms` now and goes on with monotonic time: of a simulation, whose time is
    /// tokio's.
    pub fn steady(unix_ms: u64) -> Clock {
        Clock(Source::Steady { unix_ms, at: Clock::system().now() })
    }

    /// Wall time, milliseconds since the Unix epoch.
    #[allow(clippy::disallowed_methods, reason = "rt is where the clock is read")]
    pub fn unix_ms(&self) -> u64 {
        match &self.0 {
            Source::System => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
            }
            Source::Manual(cell) => cell.load(Ordering::Acquire),
            Source::Steady { unix_ms, at } => unix_ms + (self.now() - *at).as_millis() as u64,
        }
    }

    /// The same in microseconds, as far as the clock has them.
    #[allow(clippy::disallowed_methods, reason = "rt is where the clock is read")]
    pub fn unix_us(&self) -> u64 {
        match &self.0 {
            Source::System => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_micros() as u64)
            }
            Source::Manual(cell) => cell.load(Ordering::Acquire) * 1000,
            Source::Steady { unix_ms, at } => unix_ms * 1000 + (self.now() - *at).as_micros() as u64,
        }
    }

    /// Monotonic time, for deadlines. Follows tokio's clock, which tests pause.
    #[allow(clippy::disallowed_methods, reason = "rt is where the clock is read")]
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// Waits until `deadline`. Cancel-safe.
    #[allow(clippy::disallowed_methods, reason = "rt is where waiting on the clock happens")]
    pub async fn sleep_until(&self, deadline: Instant) {
        tokio::time::sleep_until(deadline).await;
    }

    /// Waits for `span`. Cancel-safe.
    pub async fn sleep(&self, span: Duration) {
        self.sleep_until(self.now() + span).await;
    }
}

impl Alarm {
    /// Waits until `deadline`. Cancel-safe.
    pub fn rings(&mut self, deadline: Instant) -> impl Future<Output = ()> + Send {
        std::future::poll_fn(move |cx| self.poll_rings(deadline, cx))
    }

    /// The same as a poll, for a task that waits for other things as well.
    #[allow(clippy::disallowed_methods, reason = "rt is where waiting on the clock happens")]
    pub fn poll_rings(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let is_news = self.told.is_news_to(cx);
        if !is_news && self.until == Some(deadline) && Instant::now() < deadline {
            return Poll::Pending;
        }
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        // A task that is to let others go first would not be put among those that are told.
        let rung = pin!(coop::unconstrained(sleep.as_mut())).poll(cx);
        self.until = rung.is_pending().then_some(deadline);
        rung
    }
}

impl ManualClock {
    /// Moves wall time forward.
    pub fn advance_ms(&self, span_ms: u64) {
        self.0.fetch_add(span_ms, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_only_by_hand() {
        let (clock, hand) = Clock::manual(1_000);
        let copy = clock.clone();
        assert_eq!(clock.unix_ms(), 1_000);
        hand.advance_ms(500);
        assert_eq!((clock.unix_ms(), copy.unix_ms()), (1_500, 1_500));
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_rings_when_it_was_last_set_to() {
        let clock = Clock::system();
        let (began, mut alarm) = (clock.now(), Alarm::default());
        let at = |ms| began + Duration::from_millis(ms);
        for (set, until, rings) in
            [(100, 10, false), (50, 60, true), (55, 60, true), (200, 100, false), (80, 250, true)]
        {
            let rung = tokio::select! {
                biased;
                () = alarm.rings(at(set)) => true,
                () = clock.sleep_until(at(until)) => false,
            };
            assert_eq!(rung, rings, "set to {set}, looked at until {until}");
        }
        assert_eq!(clock.now(), at(100));
    }

    #[tokio::test(start_paused = true)]
    async fn steady_clock_goes_on_with_monotonic_time() {
        let clock = Clock::steady(1_000);
        clock.sleep(Duration::from_millis(70)).await;
        assert_eq!(clock.unix_ms(), 1_070);
    }
}
