//! Turns one after the other, so many a second: who is sent away does not come back together with all others.
//!
//! In: that somebody is to have a turn. Out: how long until then. Never: waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Turns in a second, where there is time for that.
const TURNS_PER_SECOND: u64 = 200;

/// Gives out turns.
#[derive(Debug, Default)]
pub struct Stagger {
    // How many turns were given.
    tickets: AtomicU64,
}

impl Stagger {
    /// How long the next caller waits for its turn.
    pub fn next(&self) -> Duration {
        wait(self.ticket(), TURNS_PER_SECOND)
    }

    /// The same where about `all` have their turns within `span`: faster if there is not enough time for all.
    pub fn next_within(&self, all: u64, span: Duration) -> Duration {
        let ticket = self.ticket();
        Stagger::wait_within(ticket, all.max(ticket + 1), span)
    }

    /// How long the one with this ticket of about `all` waits.
    pub fn wait_within(ticket: u64, all: u64, span: Duration) -> Duration {
        let needed = u128::from(all) * 1_000 / span.as_millis().max(1);
        let rate = TURNS_PER_SECOND.max(u64::try_from(needed).unwrap_or(u64::MAX));
        wait(ticket, rate).min(span)
    }

    fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }
}

fn wait(ticket: u64, per_second: u64) -> Duration {
    Duration::from_millis(ticket.saturating_mul(1_000) / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_at_a_rate_and_faster_where_there_is_no_time_for_all() {
        let (alone, short) = (Stagger::default(), Stagger::default());
        let waits = [0, 1, 2].map(|_| {
            (alone.next().as_millis(), short.next_within(2_000, Duration::from_secs(2)).as_millis())
        });
        assert_eq!(waits, [(0, 0), (5, 1), (10, 2)]);
    }
}
