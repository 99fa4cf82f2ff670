//! How fast requests are made: a token bucket as client-go's, and the pauses that a server asks for.
//!
//! In: who wants to make a request, and how much waits for it; what a `Retry-After` said. Out: leave to
//! make it. Shared by all who make requests to one server. Never: makes a request, looks at an answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_client::limits::RETRY_AFTER_MAX;
use forebay_rt::{Clock, Duration, Instant, Random};
use tokio::sync::Notify;

use crate::limits::PAUSE_SPREAD;

/// Leave to make requests, given by [`Rank`], and in order of arrival among those of one.
#[derive(Debug)]
pub struct Throttle {
    clock: Clock,
    random: Random,
    /// `None`: no limit.
    rate: Option<Rate>,
    // Locked for a few lines, never across a wait.
    state: Mutex<State>,
}

/// Who goes first where not all may go at once: what somebody waits for; of that what only goes on from where
/// it was, then whole states; the smaller before the larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub waited_for: WaitedFor,
    pub is_state: bool,
    /// What it was when it was last had.
    pub bytes: usize,
}

/// Whether somebody waits for what is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitedFor {
    Yes,
    #[default]
    No,
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
    /// What comes behind a pause that the server asked for: nobody goes before.
    pause: Option<Spread>,
    // Arrival -> who waits for its part of a pause, and who for a token; <= one for each request of the
    // callers'.
    resting: BTreeMap<u64, Resting>,
    waiting: BTreeMap<u64, Waiting>,
    arrivals: u64,
}

/// How much waits for a request now: somebody may begin to wait for what is asked. It looks at numbers, under
/// the lock.
type RankNow = Arc<dyn Fn() -> Rank + Send + Sync>;

/// Who waits for a token.
struct Waiting {
    rank: RankNow,
    is_first: Arc<Notify>,
}

/// Who goes when its part of a time is over that is spread over all who rest.
struct Resting {
    waiting: Waiting,
    spread: Spread,
    /// From 0 to 1. When it is over, whoever ranks first takes it, and this one the other's.
    part: f64,
}

/// A time over which requests are spread.
#[derive(Clone, Copy, Debug)]
struct Spread {
    from: Instant,
    span: Duration,
}

/// A place among those who rest, or who wait for a token, until it is dropped.
struct Place<'t> {
    throttle: &'t Throttle,
    arrival: u64,
    is_first: Arc<Notify>,
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
            resting: BTreeMap::new(),
            waiting: BTreeMap::new(),
            arrivals: 0,
        };
        Throttle { clock, random, rate, state: Mutex::new(state) }
    }

    /// Waits until a request may be made. Who is of the first rank goes first, then who came first, but for
    /// those whom a pause spread. Cancel-safe: who no longer waits takes no token.
    ///
    /// - `rank`: asked again whenever somebody may go.
    pub async fn acquire(&self, rank: impl Fn() -> Rank + Send + Sync + 'static) {
        self.acquire_within(Duration::ZERO, rank).await;
    }

    /// The same for one of many that have cause to make requests at the same moment: they go one after the
    /// other within `span`, in the order of their ranks.
    pub async fn acquire_within(&self, span: Duration, rank: impl Fn() -> Rank + Send + Sync + 'static) {
        let rank: RankNow = Arc::new(rank);
        self.rest(span, &rank).await;
        let Some(rate) = self.rate else { return };
        let place = self.enter(rank);
        loop {
            match self.take_or_when(rate, place.arrival) {
                Turn::Taken => return,
                // Somebody may come meanwhile who goes first: it is looked at again then.
                Turn::At(at) => self.clock.sleep_until(at).await,
                Turn::Others => place.is_first.notified().await,
            }
        }
    }

    fn enter(&self, rank: RankNow) -> Place<'_> {
        let is_first = Arc::new(Notify::new());
        let waiting = Waiting { rank, is_first: is_first.clone() };
        let mut state = self.state();
        let arrival = state.arrive();
        state.waiting.insert(arrival, waiting);
        Place { throttle: self, arrival, is_first }
    }

    /// The server asked to be left alone for so long, with a 503: nobody makes a request before, and
    /// they come back one after the other over the half of that time that follows. A longer pause that was
    /// asked for before stands.
    pub fn until(&self, retry_after: Duration) {
        let span = retry_after.min(RETRY_AFTER_MAX);
        let pause = Spread { from: self.clock.now() + span, span: span.mul_f64(PAUSE_SPREAD) };
        let mut state = self.state();
        if state.pause.is_none_or(|told| told.from < pause.from) {
            state.pause = Some(pause);
        }
    }

    /// Waits for a part of `span`, and of the pause, also of one that is told meanwhile.
    async fn rest(&self, span: Duration, rank: &RankNow) {
        let Some(place) = self.lie_down(span, rank) else { return };
        while let Some(at) = self.gets_up_at(place.arrival) {
            tokio::select! {
                () = self.clock.sleep_until(at) => {}
                () = place.is_first.notified() => {}
            }
        }
    }

    /// A place among those who rest, if there is reason to.
    fn lie_down(&self, span: Duration, rank: &RankNow) -> Option<Place<'_>> {
        let from = self.clock.now();
        let mut state = self.state();
        if span.is_zero() && state.pause_at(from).is_none() {
            return None;
        }
        let is_first = Arc::new(Notify::new());
        let waiting = Waiting { rank: rank.clone(), is_first: is_first.clone() };
        let part = self.random.below(1 << 20) as f64 / f64::from(1 << 20);
        let arrival = state.arrive();
        state.resting.insert(arrival, Resting { waiting, spread: Spread { from, span }, part });
        Some(Place { throttle: self, arrival, is_first })
    }

    /// When whoever rests there looks again; `None` if it is time to go.
    fn gets_up_at(&self, arrival: u64) -> Option<Instant> {
        let now = self.clock.now();
        let mut state = self.state();
        let pause = state.pause_at(now);
        loop {
            // Whoever came to its own part and found this one before it has let it go.
            let mine = state.resting.get(&arrival)?;
            let at = mine.ends_at(pause);
            if at > now {
                return Some(at);
            }
            let first = state.first_at_rest().filter(|first| *first != arrival)?;
            let first = state.resting.remove(&first)?;
            first.waiting.is_first.notify_one();
            state.resting.get_mut(&arrival)?.part = first.part;
        }
    }

    /// Takes a token for whoever is at that place, or says when there will be one.
    fn take_or_when(&self, rate: Rate, arrival: u64) -> Turn {
        let now = self.clock.now();
        let mut state = self.state();
        if let Some((first, is_first)) = state.first()
            && first != arrival
        {
            // It may have come while this one waited for the token.
            is_first.notify_one();
            return Turn::Others;
        }
        let grown = now.saturating_duration_since(state.counted).as_secs_f64() * rate.qps;
        state.tokens = (state.tokens + grown).min(f64::from(rate.burst));
        state.counted = now;
        // A timer that rings a rounding too early would else be set again for no time at all.
        if state.tokens >= 1.0 - 1e-6 {
            state.tokens -= 1.0;
            return Turn::Taken;
        }
        Turn::At(now + Duration::from_secs_f64((1.0 - state.tokens) / rate.qps))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn arrive(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// The pause, until its spread is over.
    fn pause_at(&mut self, now: Instant) -> Option<Spread> {
        self.pause = self.pause.filter(|pause| now < pause.from + pause.span);
        self.pause
    }

    fn first_at_rest(&self) -> Option<u64> {
        // Few: a program's informers, each with one request.
        let first = self.resting.iter().min_by_key(|(arrival, it)| ((it.waiting.rank)(), **arrival));
        first.map(|(arrival, _)| *arrival)
    }

    /// Who goes next.
    fn first(&self) -> Option<(u64, &Notify)> {
        // Few: a program's informers, each with one request.
        let first = self.waiting.iter().min_by_key(|(arrival, waiting)| ((waiting.rank)(), **arrival));
        first.map(|(arrival, waiting)| (*arrival, &*waiting.is_first))
    }
}

impl Resting {
    /// When its part is over: of its own time, and of the pause.
    fn ends_at(&self, pause: Option<Spread>) -> Instant {
        let at = |spread: Spread| spread.from + spread.span.mul_f64(self.part);
        pause.map_or(at(self.spread), |pause| at(pause).max(at(self.spread)))
    }
}

impl std::fmt::Debug for Resting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resting")
            .field("waiting", &self.waiting)
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("rank", &(self.rank)()).finish_non_exhaustive()
    }
}

enum Turn {
    Taken,
    /// There is no token before that.
    At(Instant),
    /// Others go first.
    Others,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.throttle.state();
        let gone = (state.resting.remove(&self.arrival), state.waiting.remove(&self.arrival));
        if let Some((_, is_first)) = state.first() {
            is_first.notify_one();
        }
        drop(state);
        drop(gone);
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
                throttle.acquire(Rank::default).await;
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
        throttle.acquire(Rank::default).await;
        let gone = throttle.clone();
        let waits = tokio::spawn(async move { gone.acquire(Rank::default).await });
        tokio::task::yield_now().await;
        waits.abort();
        assert!(waits.await.is_err_and(|e| e.is_cancelled()));
        let at = times(&throttle, &clock, 1).await[0];
        assert!((1_000..1_003).contains(&at), "{at}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_somebody_waits_for_goes_first_then_what_goes_on_then_the_smaller() {
        use WaitedFor::{No, Yes};
        let (throttle, clock) = throttle(Some(Rate { qps: 1.0, burst: 1 }));
        throttle.acquire(Rank::default).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let ranks = [
            ("unwatched", No, false, 0),
            ("large", Yes, true, 900),
            ("small", Yes, true, 5),
            ("unwatched state", No, true, 0),
            ("resumed", Yes, false, 900),
            ("resumed small", Yes, false, 5),
        ];
        let mut tasks = Vec::new();
        for (name, waited_for, is_state, bytes) in ranks {
            let (throttle, order) = (throttle.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                throttle.acquire(move || Rank { waited_for, is_state, bytes }).await;
                order.lock().expect("sound").push(name);
            }));
            // Each has come, and the first waits for the token already, before the next comes.
            clock.sleep(Duration::from_millis(10)).await;
        }
        // One that leaves hands its turn on.
        tasks.remove(2).abort();
        for task in tasks {
            task.await.expect("no panic");
        }
        let want = ["resumed small", "resumed", "large", "unwatched", "unwatched state"];
        assert_eq!(*order.lock().expect("sound"), want);
        assert!(throttle.state().waiting.is_empty());
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
        throttle.acquire(Rank::default).await;
    }

    #[tokio::test(start_paused = true)]
    async fn within_a_time_they_go_by_rank_at_the_times_that_chance_gives() {
        for (pause, within) in [(0, 3), (8, 0), (8, 3)] {
            let (throttle, clock) = throttle(None);
            throttle.until(Duration::from_secs(pause));
            let began = clock.now() + Duration::from_secs(pause);
            let order = Arc::new(Mutex::new(Vec::new()));
            // The last twenty are waited for; the very last only from when the pause is over.
            let awaited = Arc::new(Mutex::new(20..39));
            let mut tasks = Vec::new();
            for number in 0..40 {
                let (throttle, clock, order) = (throttle.clone(), clock.clone(), order.clone());
                let awaited = awaited.clone();
                tasks.push(tokio::spawn(async move {
                    let is_awaited = move || awaited.lock().expect("sound").contains(&number);
                    let waited_for = move || if is_awaited() { WaitedFor::Yes } else { WaitedFor::No };
                    let rank = move || Rank { waited_for: waited_for(), ..Rank::default() };
                    throttle.acquire_within(Duration::from_secs(within), rank).await;
                    let after = clock.now().saturating_duration_since(began);
                    order.lock().expect("sound").push((number, after.as_secs_f64()));
                }));
                tokio::task::yield_now().await;
            }
            clock.sleep_until(began).await;
            awaited.lock().expect("sound").end = 40;
            // One that leaves takes nobody's place.
            tasks.remove(5).abort();
            for task in tasks {
                task.await.expect("no panic");
            }
            let order = order.lock().expect("sound").clone();
            let (first, rest) = order.split_at(20);
            assert!(first.iter().all(|(number, _)| *number >= 20), "{order:?}");
            assert!(rest.len() == 19 && rest.iter().all(|(number, _)| *number < 20), "{order:?}");
            let span = if pause == 0 { 3.0 } else { 4.0 };
            let half = first.last().expect("twenty").1 / span;
            assert!((0.3..0.7).contains(&half), "as many come in the first half as in the other: {order:?}");
            assert!(order.windows(2).all(|two| two[1].1 - two[0].1 < span / 4.0), "{order:?}");
            assert!(throttle.state().resting.is_empty());
        }
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
