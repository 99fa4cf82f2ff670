//! When a key may be tried again: by how often it failed, by how many fail at all, or the later of several.
//!
//! In: keys, and the time. Out: how long each is to wait. Never: asks for the time, waits, or knows the
//! queue. Each limiter has one owner. What is kept is one number a key that failed and was not forgotten
//! since: a key is forgotten when it is done, so that the bound is the number of objects.

use std::collections::HashMap;
use std::hash::Hash;

use forebay_rt::{Duration, Instant};

use super::limits;

/// Says how long a key that failed is to wait. What it is asked must not block and must not panic.
pub trait RateLimiter<K>: Send {
    /// How long `key` is to wait from `now`; counts as a failure of it.
    fn when(&mut self, key: &K, now: Instant) -> Duration;

    /// `key` is done: its failures no longer count.
    fn forget(&mut self, key: &K);

    /// How often `key` failed since it was last forgotten; 0 from a limiter that does not count.
    fn requeues(&self, key: &K) -> u32;
}

/// The first delay, doubled with each failure of the key up to the longest.
///
/// Source: client-go `util/workqueue/default_rate_limiters.go`, `ItemExponentialFailureRateLimiter`.
#[derive(Debug)]
pub struct ItemExponential<K> {
    base: Duration,
    max: Duration,
    // key -> failures since it was forgotten
    failures: HashMap<K, u32>,
}

/// One delay for the first failures of a key, another one for those after them.
///
/// Source: the same file, `ItemFastSlowRateLimiter`.
#[derive(Debug)]
pub struct ItemFastSlow<K> {
    fast: Duration,
    slow: Duration,
    fast_max: u32,
    // key -> failures since it was forgotten
    failures: HashMap<K, u32>,
}

/// A bucket of tokens for all keys together: each failure takes one, and waits for it where there is none
/// left.
///
/// Source: the same file, `BucketRateLimiter`; `golang.org/x/time/rate`, `Reserve`.
#[derive(Debug)]
pub struct Bucket {
    // Until a token comes back.
    token: Duration,
    burst: u32,
    // When the bucket is full again; all that is kept of the tokens.
    full_at: Option<Instant>,
}

/// The longest of what several say; all of them are asked each time.
pub struct MaxOf<K>(Vec<Box<dyn RateLimiter<K>>>);

/// What another one says, up to a limit.
#[derive(Debug)]
pub struct MaxWait<L> {
    of: L,
    max: Duration,
}

/// What client-go uses where nothing else is asked for: 5 ms to 1,000 s a key, and 10 retries a second after
/// a burst of 100.
pub fn default_limiter<K: Clone + Eq + Hash + Send + 'static>() -> MaxOf<K> {
    MaxOf::new(vec![
        Box::new(ItemExponential::new(limits::BASE_DELAY, limits::MAX_DELAY)),
        Box::new(Bucket::new(limits::BUCKET_QPS, limits::BUCKET_BURST)),
    ])
}

impl<K> ItemExponential<K> {
    /// - `base`: the delay after the first failure.
    /// - `max`: the longest.
    pub fn new(base: Duration, max: Duration) -> ItemExponential<K> {
        ItemExponential { base, max, failures: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Send> RateLimiter<K> for ItemExponential<K> {
    fn when(&mut self, key: &K, _now: Instant) -> Duration {
        let before = count(&mut self.failures, key);
        let factor = 1_u32.checked_shl(before).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }

    fn forget(&mut self, key: &K) {
        forget(&mut self.failures, key);
    }

    fn requeues(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }
}

impl<K> ItemFastSlow<K> {
    /// - `fast`: the delay after each of the first `fast_max` failures.
    /// - `slow`: the delay after each later one.
    pub fn new(fast: Duration, slow: Duration, fast_max: u32) -> ItemFastSlow<K> {
        ItemFastSlow { fast, slow, fast_max, failures: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Send> RateLimiter<K> for ItemFastSlow<K> {
    fn when(&mut self, key: &K, _now: Instant) -> Duration {
        if count(&mut self.failures, key) < self.fast_max { self.fast } else { self.slow }
    }

    fn forget(&mut self, key: &K) {
        forget(&mut self.failures, key);
    }

    fn requeues(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }
}

impl Bucket {
    /// A full bucket.
    ///
    /// - `qps`: tokens that come back in a second; 0 is taken as 1.
    /// - `burst`: tokens it holds; with 0 every failure waits.
    pub fn new(qps: u32, burst: u32) -> Bucket {
        Bucket { token: Duration::from_secs(1) / qps.max(1), burst, full_at: None }
    }
}

impl<K> RateLimiter<K> for Bucket {
    fn when(&mut self, _key: &K, now: Instant) -> Duration {
        let full_at = self.full_at.unwrap_or(now).max(now) + self.token;
        self.full_at = Some(full_at);
        (full_at - now).saturating_sub(self.token.saturating_mul(self.burst))
    }

    fn forget(&mut self, _key: &K) {}

    fn requeues(&self, _key: &K) -> u32 {
        0
    }
}

impl<K> MaxOf<K> {
    /// - `limiters`: those that are asked; with none of them nothing waits.
    pub fn new(limiters: Vec<Box<dyn RateLimiter<K>>>) -> MaxOf<K> {
        MaxOf(limiters)
    }
}

impl<K> RateLimiter<K> for MaxOf<K> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        self.0.iter_mut().map(|limiter| limiter.when(key, now)).max().unwrap_or(Duration::ZERO)
    }

    fn forget(&mut self, key: &K) {
        self.0.iter_mut().for_each(|limiter| limiter.forget(key));
    }

    fn requeues(&self, key: &K) -> u32 {
        self.0.iter().map(|limiter| limiter.requeues(key)).max().unwrap_or(0)
    }
}

impl<L> MaxWait<L> {
    /// What `of` says, but at most `max`.
    pub fn new(of: L, max: Duration) -> MaxWait<L> {
        MaxWait { of, max }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for MaxWait<L> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        self.of.when(key, now).min(self.max)
    }

    fn forget(&mut self, key: &K) {
        self.of.forget(key);
    }

    fn requeues(&self, key: &K) -> u32 {
        self.of.requeues(key)
    }
}

/// Failures of `key` before this one, which is counted.
fn count<K: Clone + Eq + Hash>(failures: &mut HashMap<K, u32>, key: &K) -> u32 {
    match failures.get_mut(key) {
        Some(count) => {
            let before = *count;
            *count = before.saturating_add(1);
            before
        }
        None => {
            failures.insert(key.clone(), 1);
            0
        }
    }
}

fn forget<K: Eq + Hash>(failures: &mut HashMap<K, u32>, key: &K) {
    if failures.remove(key).is_some() && failures.is_empty() {
        failures.shrink_to(limits::ROOM_KEPT);
    }
}

#[cfg(test)]
mod tests {
    use forebay_rt::Clock;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn now() -> Instant {
        Clock::manual(0).0.now()
    }

    /// What `limiter` says to `a`, so often at the same time, in ms.
    fn says(limiter: &mut dyn RateLimiter<&'static str>, now: Instant, times: usize) -> Vec<u128> {
        (0..times).map(|_| limiter.when(&"a", now).as_millis()).collect()
    }

    #[test]
    fn a_key_waits_twice_as_long_each_time_up_to_the_longest_and_anew_once_forgotten() {
        let mut limiter = ItemExponential::new(ms(5), ms(50));
        assert_eq!(says(&mut limiter, now(), 6), [5, 10, 20, 40, 50, 50]);
        assert_eq!((limiter.requeues(&"a"), limiter.requeues(&"b")), (6, 0));
        assert_eq!(limiter.when(&"b", now()), ms(5));
        limiter.forget(&"a");
        assert_eq!(limiter.requeues(&"a"), 0);
        assert_eq!(says(&mut limiter, now(), 2), [5, 10]);
    }

    #[test]
    fn a_key_that_fails_for_ever_waits_the_longest() {
        let mut limiter = ItemExponential::new(limits::BASE_DELAY, limits::MAX_DELAY);
        let said = says(&mut limiter, now(), 200);
        assert_eq!((said[17], said[18]), (655_360, 1_000_000));
        assert!(said[18..].iter().all(|wait| *wait == 1_000_000));
        assert_eq!(limiter.requeues(&"a"), 200);
    }

    #[test]
    fn what_was_forgotten_leaves_no_room_behind() {
        let mut limiter = ItemExponential::new(ms(5), ms(50));
        (0..10_000).for_each(|key| assert_eq!(limiter.when(&key, now()), ms(5)));
        (0..10_000).for_each(|key| limiter.forget(&key));
        assert!(limiter.failures.capacity() <= 2 * limits::ROOM_KEPT);
    }

    #[test]
    fn the_first_failures_wait_shortly_and_the_others_long() {
        let mut limiter = ItemFastSlow::new(ms(5), ms(10_000), 2);
        assert_eq!(says(&mut limiter, now(), 4), [5, 5, 10_000, 10_000]);
        assert_eq!(limiter.requeues(&"a"), 4);
        limiter.forget(&"a");
        assert_eq!(says(&mut limiter, now(), 1), [5]);
    }

    #[test]
    fn a_bucket_lets_a_burst_pass_and_then_one_at_a_time() {
        let (mut limiter, now) = (Bucket::new(10, 3), now());
        assert_eq!(says(&mut limiter, now, 5), [0, 0, 0, 100, 200]);
        // Half a token came back, and two are owed.
        assert_eq!(says(&mut limiter, now + ms(50), 1), [250]);
        // All that were owed came back, and two more.
        assert_eq!(says(&mut limiter, now + ms(500), 3), [0, 0, 100]);
        // It holds no more than the burst, however long it is left alone.
        assert_eq!(says(&mut limiter, now + ms(60_000), 4), [0, 0, 0, 100]);
        assert_eq!(RateLimiter::<&str>::requeues(&limiter, &"a"), 0);
    }

    #[test]
    fn of_several_the_longest_counts_and_all_are_asked() {
        let mut limiter = MaxOf::new(vec![
            Box::new(ItemExponential::new(ms(5), ms(1_000))) as Box<dyn RateLimiter<&'static str>>,
            Box::new(Bucket::new(10, 2)),
            Box::new(MaxWait::new(ItemFastSlow::new(ms(30), ms(10_000), 3), ms(120))),
        ]);
        assert_eq!(says(&mut limiter, now(), 5), [30, 30, 100, 200, 300]);
        assert_eq!(limiter.requeues(&"a"), 5);
        limiter.forget(&"a");
        assert_eq!(limiter.requeues(&"a"), 0);
    }

    #[test]
    fn nothing_waits_for_no_limiter() {
        assert_eq!(says(&mut MaxOf::new(Vec::new()), now(), 3), [0, 0, 0]);
    }

    #[test]
    fn by_default_a_hundred_fail_at_once_and_then_ten_a_second() {
        let (mut limiter, now) = (default_limiter::<u32>(), now());
        let waits: Vec<_> = (0..103).map(|key| limiter.when(&key, now).as_millis()).collect();
        assert!(waits[..100].iter().all(|wait| *wait == 5));
        assert_eq!(waits[100..], [100, 200, 300]);
    }
}
