//! How fast requests are made: a token bucket as client-go's, and the pauses that a server asks for.
//!
//! In: who wants to make a request; what a `Retry-After` said. Out: leave to make it. Shared by all who make requests to one server.
//! Never: makes a request, looks at an answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_client::limits::RETRY_AFTER_MAX;
use forebay_rt::{Clock, Duration, Instant, Random};
use tokio::sync::Semaphore;

use crate::limits::PAUSE_SPREAD;

/// Leave to make requests, given in order of arrival.
#[derive(Debug)]
pub struct Throttle {
    clock: Clock,
    random: Random,
    /// `None`: no limit.
    rate: Option<Rate>,
    // Whose turn it is to wait for a token: the others wait for the turn, oldest first.
    turn: Semaphore,
    // Locked for a few lines, never across a wait.
    state: Mutex<State>,
}

/// So many requests a second, and so many at once after a while without any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Above 0.
    pub qps: f64,
    /// At least 1.
    pub burst: u32,
}

#[derive(Debug)]
struct State {
    /// As of `counted`.
    tokens: f64,
    counted: Instant,
    pause: Option<Pause>,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Instant,
    /// Each waiting request waits a random part of this longer.
    spread: Duration,
}

impl Throttle {
    /// - `rate`: `None` is no bucket, only the pauses that a server asks for.
    ///
    /// # Panics
    /// When the rate is none: no request a second, or none at once.
    pub fn new(rate: Option<Rate>, clock: Clock, random: Random) -> Throttle {
        let usable = |rate: &Rate| rate.qps.is_finite() && rate.qps > 0.0 && rate.burst > 0;
        assert!(rate.as_ref().is_none_or(usable), "no request could ever be made: {rate:?}");
        let state = State {
            tokens: rate.map_or(0.0, |rate| f64::from(rate.burst)),
            counted: clock.now(),
            pause: None,
        };
        Throttle { clock, random, rate, turn: Semaphore::new(1), state: Mutex::new(state) }
    }

    /// Waits until a request may be made. Who came first goes first, but for those whom a pause spread. Cancel-safe: who no longer
    /// waits takes no token.
    pub async fn acquire(&self) {
        self.pass_pause().await;
        let Some(rate) = self.rate else { return };
        // The semaphore is never closed.
        let Ok(_turn) = self.turn.acquire().await else { return };
        while let Some(at) = self.take_or_when(rate) {
            self.clock.sleep_until(at).await;
        }
    }

    /// The server asked to be left alone for so long, with a 429 or 503: nobody makes a request before, and they come back one
    /// after the other over the half of that time that follows. A longer pause that was asked for before stands.
    pub fn until(&self, retry_after: Duration) {
        let span = retry_after.min(RETRY_AFTER_MAX);
        let pause = Pause { until: self.clock.now() + span, spread: span.mul_f64(PAUSE_SPREAD) };
        let mut state = self.state();
        if state.pause.is_none_or(|told| told.until < pause.until) {
            state.pause = Some(pause);
        }
    }

    /// Waits for its own part of the pause, also of one that is told meanwhile.
    async fn pass_pause(&self) {
        let mut part = None;
        while let Some(pause) = self.pause() {
            let part = *part.get_or_insert_with(|| self.random.below(1 << 20) as f64 / f64::from(1 << 20));
            let mine = pause.until + pause.spread.mul_f64(part);
            if self.clock.now() >= mine {
                return;
            }
            self.clock.sleep_until(mine).await;
        }
    }

    /// The pause, until its spread is over.
    fn pause(&self) -> Option<Pause> {
        let now = self.clock.now();
        let mut state = self.state();
        state.pause = state.pause.filter(|pause| now < pause.until + pause.spread);
        state.pause
    }

    /// Takes a token, or says when there will be one.
    fn take_or_when(&self, rate: Rate) -> Option<Instant> {
        let now = self.clock.now();
        let mut state = self.state();
        let grown = now.saturating_duration_since(state.counted).as_secs_f64() * rate.qps;
        state.tokens = (state.tokens + grown).min(f64::from(rate.burst));
        state.counted = now;
        // A timer that rings a rounding too early would else be set again for no time at all.
        if state.tokens >= 1.0 - 1e-6 {
            state.tokens -= 1.0;
            return None;
        }
        Some(now + Duration::from_secs_f64((1.0 - state.tokens) / rate.qps))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn throttle(rate: Option<Rate>) -> (Arc<Throttle>, Clock) {
        let (clock, _) = Clock::manual(0);
        (Arc::new(Throttle::new(rate, clock.clone(), Random::seeded(1))), clock)
    }

    /// When each of `count` that come at once may go, in milliseconds since, in order of arrival.
    async fn times(throttle: &Arc<Throttle>, clock: &Clock, count: usize) -> Vec<u64> {
        let began = clock.now();
        let mut tasks = Vec::new();
        for _ in 0..count {
            let (throttle, clock) = (throttle.clone(), clock.clone());
            tasks.push(tokio::spawn(async move {
                throttle.acquire().await;
                (clock.now() - began).as_millis() as u64
            }));
            tokio::task::yield_now().await;
        }
        let mut times = Vec::new();
        for task in tasks {
            times.push(task.await.expect("no panic"));
        }
        times
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_in_order_at_the_rate() {
        let (throttle, clock) = throttle(Some(Rate { qps: 5.0, burst: 3 }));
        let first = times(&throttle, &clock, 6).await;
        assert_eq!(first[..3], [0, 0, 0]);
        for (at, due) in first[3..].iter().zip([200, 400, 600]) {
            assert!((due..due + 3).contains(at), "{first:?}");
        }
        // The bucket fills again, and no further.
        clock.sleep(Duration::from_secs(60)).await;
        let then = times(&throttle, &clock, 4).await;
        assert_eq!((&then[..3], then[3] >= 200), (&[0, 0, 0][..], true), "{then:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_no_longer_waits_takes_no_token() {
        let (throttle, clock) = throttle(Some(Rate { qps: 1.0, burst: 1 }));
        throttle.acquire().await;
        let gone = throttle.clone();
        let waits = tokio::spawn(async move { gone.acquire().await });
        tokio::task::yield_now().await;
        waits.abort();
        assert!(waits.await.is_err_and(|e| e.is_cancelled()));
        let at = times(&throttle, &clock, 1).await[0];
        assert!((1_000..1_003).contains(&at), "{at}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_all_and_they_come_back_spread() {
        let (throttle, clock) = throttle(None);
        throttle.until(Duration::from_secs(10));
        throttle.until(Duration::from_secs(4));
        let mut times = times(&throttle, &clock, 50).await;
        assert!(times.iter().all(|at| (10_000..=15_001).contains(at)), "{times:?}");
        times.sort_unstable();
        let widest = times.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(widest.is_some_and(|gap| gap < 1_000), "{times:?}");
        throttle.acquire().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_told_while_others_wait_holds_them_too_and_no_pause_is_longer_than_the_limit() {
        let (throttle, clock) = throttle(None);
        throttle.until(Duration::from_secs(1));
        let told = throttle.clone();
        let later = clock.clone();
        let tell = tokio::spawn(async move {
            later.sleep(Duration::from_millis(500)).await;
            told.until(Duration::from_secs(100_000));
        });
        let times = times(&throttle, &clock, 10).await;
        tell.await.expect("told");
        let longest = RETRY_AFTER_MAX.as_millis() as u64;
        assert!(times.iter().all(|at| (longest + 500..=longest * 3 / 2 + 501).contains(at)), "{times:?}");
    }
}
