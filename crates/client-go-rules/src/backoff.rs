//! How long a client waits before it tries again: client-go's own wait, doubled from 0.8 s to 30 s, with as
//! much again at random.
//!
//! In: an instant, and a draw. Out: a wait. Never: a wait that a server has named, which is kept exactly.

use std::time::Duration;

use forebay_rt::Random;

const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);
/// It begins anew when so long has passed since it began, not since the last wait.
const FORGOTTEN: Duration = Duration::from_secs(120);

/// Source: client-go v0.36.3 `tools/cache/reflector.go`, apimachinery `util/wait/backoff.go`.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    began: Duration,
}

impl Backoff {
    pub fn new(now: Duration) -> Backoff {
        Backoff { next: FIRST, began: now }
    }

    /// The next wait, of one who waits from now on.
    pub fn wait(&mut self, now: Duration, random: &Random) -> Duration {
        if now.saturating_sub(self.began) > FORGOTTEN {
            *self = Backoff::new(now);
        }
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST);
        wait.mul_f64(1.0 + fraction(random))
    }
}

/// A number in 0..1.
pub fn fraction(random: &Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_doubles_up_to_thirty_seconds_with_at_most_as_much_again() {
        let (now, random) = (Duration::ZERO, Random::seeded(1));
        let mut backoff = Backoff::new(now);
        for least in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let wait = backoff.wait(now, &random).as_secs_f64();
            assert!((least..least * 2.0).contains(&wait), "{wait} of {least}");
        }
    }

    #[test]
    fn it_begins_anew_two_minutes_after_it_began() {
        let (began, random) = (Duration::ZERO, Random::seeded(2));
        let mut backoff = Backoff::new(began);
        let mut at = |seconds| backoff.wait(began + Duration::from_secs(seconds), &random).as_secs_f64();
        assert!(at(0) < 1.6);
        assert!(at(1) >= 1.6);
        assert!(at(120) >= 3.2);
        assert!(at(121) < 1.6);
    }
}
