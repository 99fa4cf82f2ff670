//! How long to wait before the next request.
//!
//! In: that something failed, what the server said of when to come back, and that there was progress. Out: a
//! time to wait. Never: reads the clock.

use forebay_rt::{Duration, Random};

use crate::limits::{BACKOFF_MAX, BACKOFF_MIN, RETRY_AFTER_MAX, SLOT_SPREAD};

/// Doublings after which the wait is [`BACKOFF_MAX`] for certain.
const STEP_MAX: u32 = 16;

/// What a server said of when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// A slot: this request alone, while others were told other times. With a 429.
    Slot(Duration),
    /// What it tells everybody.
    Pause(Duration),
}

/// Waits that double until there is progress.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Something has failed since the last progress.
    used: bool,
    step: u32,
}

impl Backoff {
    /// The wait when the first failure after progress costs none.
    pub fn at_once_first(&mut self, random: &Random) -> Duration {
        if self.used { self.wait(None, random) } else { self.begin() }
    }

    /// The wait after a failure, at least what the server `told`: its word takes the place of the doubling.
    /// The jitter comes on top. Of a slot it is within the second that it is told in: the server has spread
    /// those who are refused, and knows best. Of a pause it is as long again, because many clients are told
    /// the same and would all come back in one moment.
    pub fn wait(&mut self, told: Option<Told>, random: &Random) -> Duration {
        self.used = true;
        match told {
            Some(Told::Slot(told)) if !told.is_zero() => {
                return told.min(RETRY_AFTER_MAX) + part_of(SLOT_SPREAD, random);
            }
            Some(Told::Pause(told)) if !told.is_zero() => {
                let told = told.min(RETRY_AFTER_MAX);
                return told + part_of(told.max(BACKOFF_MIN), random);
            }
            _ => {}
        }
        let least = BACKOFF_MIN.saturating_mul(1 << self.step).min(BACKOFF_MAX);
        self.step = (self.step + 1).min(STEP_MAX);
        least + part_of(least, random)
    }

    /// There was progress, so the next wait is short again.
    pub fn reset(&mut self) {
        *self = Backoff::default();
    }

    /// Whether something has failed since the last progress.
    pub fn is_used(&self) -> bool {
        self.used
    }

    fn begin(&mut self) -> Duration {
        self.used = true;
        Duration::ZERO
    }
}

/// A random part of `whole`.
fn part_of(whole: Duration, random: &Random) -> Duration {
    Duration::from_millis(random.below(whole.as_millis() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_to_its_end_and_begins_again_after_progress() {
        let (random, mut backoff) = (Random::seeded(1), Backoff::default());
        for least in [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000] {
            let wait = backoff.wait(None, &random).as_millis();
            assert!((least..2 * least).contains(&wait), "{wait} of {least}");
        }
        (0..100).for_each(|_| assert!(backoff.wait(None, &random) < 2 * BACKOFF_MAX));
        backoff.reset();
        assert!(backoff.wait(None, &random) < 2 * BACKOFF_MIN);
    }

    #[test]
    fn the_first_failure_may_cost_nothing_and_only_the_first() {
        let (random, mut backoff) = (Random::seeded(1), Backoff::default());
        assert_eq!(backoff.at_once_first(&random), Duration::ZERO);
        assert!(backoff.at_once_first(&random) >= BACKOFF_MIN);
        backoff.reset();
        backoff.wait(None, &random);
        assert!(backoff.at_once_first(&random) >= BACKOFF_MIN);
    }

    #[test]
    fn what_a_server_told_is_obeyed_and_spread() {
        let random = Random::seeded(1);
        let told = Duration::from_secs(7);
        let waits: Vec<_> =
            (0..1_000).map(|_| Backoff::default().wait(Some(Told::Pause(told)), &random)).collect();
        assert!(waits.iter().all(|wait| (told..2 * told).contains(wait)));
        let (first, last) = (waits.iter().min().expect("some"), waits.iter().max().expect("some"));
        assert!(*last - *first > told.mul_f64(0.9), "{first:?} to {last:?}");
        assert!(Backoff::default().wait(Some(Told::Pause(Duration::ZERO)), &random) >= BACKOFF_MIN);
        assert!(Backoff::default().wait(Some(Told::Pause(Duration::MAX)), &random) <= 2 * RETRY_AFTER_MAX);
    }

    #[test]
    fn a_slot_is_kept_to_within_its_second() {
        let (random, mut backoff) = (Random::seeded(1), Backoff::default());
        for slot in [1, 7, 30] {
            let slot = Duration::from_secs(slot);
            let waits: Vec<_> = (0..1_000).map(|_| backoff.wait(Some(Told::Slot(slot)), &random)).collect();
            assert!(waits.iter().all(|wait| (slot..slot + SLOT_SPREAD).contains(wait)));
            let (first, last) = (waits.iter().min().expect("some"), waits.iter().max().expect("some"));
            assert!(*last - *first > SLOT_SPREAD.mul_f64(0.9), "{first:?} to {last:?}");
        }
        assert!(backoff.wait(Some(Told::Slot(Duration::ZERO)), &random) >= BACKOFF_MIN);
        assert!(backoff.wait(Some(Told::Slot(Duration::MAX)), &random) <= RETRY_AFTER_MAX + SLOT_SPREAD);
    }
}
