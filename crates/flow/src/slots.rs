//! When a refused client may come back: each gets a slot, so that those who obey come one after another.
//!
//! In: refusals, and turns that were had. Out: whole seconds. Never: keeps a slot free for somebody.
//!
//! Of the next 30 seconds each has as many slots as turns were had in a second of late, and no more than the
//! cores can do in a second; who is refused gets the first free one. Where none is free, the second to which
//! the least was sent: what is too much for all of them is the same for each.

use std::time::Duration;

use crate::limits::RETRY_SECONDS_MAX;
use crate::price::{Moment, SeatTime, nanos};

const SECONDS: usize = RETRY_SECONDS_MAX as usize;

/// How much of the rate is that of the last second.
const NEWEST_PART: f64 = 0.3;

/// The slots of a level.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    second: u64,
    // second % 30 -> clients sent there, and the CPU time that they take; the seconds after `second`
    sent: [(u32, u64); SECONDS],
    /// Turns a second, of late, as long as somebody was refused; what an idle level does says nothing.
    rate: f64,
    turns: u32,
    refused: bool,
    drain: Drain,
}

/// Work that a level begins in a second throughout which somebody waited.
#[derive(Debug, Default)]
struct Drain {
    rate: f64,
    work: u64,
    /// Somebody did not wait after a turn of this second.
    ran_dry: bool,
    /// The last second was such a one.
    is_known: bool,
}

impl Drain {
    fn end_second(&mut self) {
        let work = std::mem::take(&mut self.work) as f64;
        self.is_known = work > 0.0 && !std::mem::take(&mut self.ran_dry);
        if self.is_known {
            self.rate = if self.rate == 0.0 { work } else { self.rate + NEWEST_PART * (work - self.rate) };
        }
    }
}

impl Slots {
    /// Somebody had a turn, and so many others wait still.
    pub(crate) fn turn(&mut self, now: Moment, work: SeatTime, waiting: u64) {
        self.advance(now.as_secs());
        self.turns += 1;
        self.drain.work = self.drain.work.saturating_add(work);
        self.drain.ran_dry |= waiting == 0;
    }

    /// How long so much work takes that is waiting, if that is known: who waited before waited for more than
    /// a second.
    pub(crate) fn takes(&mut self, work: u128, now: Moment) -> Option<Duration> {
        self.advance(now.as_secs());
        let seconds = self.drain.is_known.then(|| work as f64 / self.drain.rate)?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// How many had one in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.rate.max(f64::from(self.turns))
    }

    /// The seconds after which one who is refused may come back, and would take so much CPU time. Turns that
    /// were had in a second say nothing of how long what was begun by them takes: into a second go no more
    /// than so many cores can do.
    ///
    /// Cost: 30 steps.
    pub(crate) fn allot(&mut self, now: Moment, cpu: Duration, cores: u64) -> u64 {
        self.advance(now.as_secs());
        self.refused = true;
        let room = self.rate().max(1.0) as u32;
        let second = cores.saturating_mul(nanos(Duration::from_secs(1)));
        let sent = |after: &u64| self.sent[self.at(*after)];
        let is_free = |after: &u64| sent(after).0 < room && sent(after).1 < second;
        let emptiest = || (1..=RETRY_SECONDS_MAX).min_by_key(|after| (sent(after).1, sent(after).0));
        let after = (1..=RETRY_SECONDS_MAX).find(is_free).or_else(emptiest).expect("there are 30 seconds");
        let (clients, taken) = &mut self.sent[((self.second + after) % RETRY_SECONDS_MAX) as usize];
        *clients = clients.saturating_add(1);
        *taken = taken.saturating_add(nanos(cpu));
        after
    }

    fn at(&self, after: u64) -> usize {
        ((self.second + after) % RETRY_SECONDS_MAX) as usize
    }

    fn advance(&mut self, second: u64) {
        let passed = second.saturating_sub(self.second);
        for _ in 0..passed.min(RETRY_SECONDS_MAX) {
            self.second += 1;
            // The second that begins is over for those who are sent somewhere; its place is that of the last
            // one.
            self.sent[(self.second % RETRY_SECONDS_MAX) as usize] = (0, 0);
            self.drain.end_second();
            let turns = f64::from(std::mem::take(&mut self.turns));
            if std::mem::take(&mut self.refused) {
                self.rate =
                    if self.rate == 0.0 { turns } else { self.rate + NEWEST_PART * (turns - self.rate) };
            }
            self.rate = self.rate.max(turns);
        }
        self.second = self.second.max(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_clients_are_sent_to_one_second_after_the_other() {
        let mut slots = Slots::default();
        (0..400).for_each(|turn| slots.turn(Duration::from_millis(turn * 10), 1, 0));
        let now = Duration::from_secs(4);
        let allot = |slots: &mut Slots, now| slots.allot(now, Duration::from_millis(1), 1);
        let seconds: Vec<u64> = (0..250).map(|_| allot(&mut slots, now)).collect();
        assert!((seconds[..100].iter().all(|it| *it == 1)) && seconds[100..200].iter().all(|it| *it == 2));
        assert_eq!(allot(&mut slots, now + Duration::from_secs(1)), 2);
    }

    #[test]
    fn what_is_too_much_for_all_seconds_is_the_same_for_each() {
        let mut slots = Slots::default();
        let mut sent = [0; SECONDS + 1];
        let now = Duration::from_secs(1_000);
        (0..3_000).for_each(|_| sent[slots.allot(now, Duration::from_millis(1), 1) as usize] += 1);
        assert!(sent[1..].iter().all(|count| *count == 100), "{sent:?}");
    }

    #[test]
    fn no_second_has_more_than_the_cores_can_do_however_many_turns_there_were() {
        let mut slots = Slots::default();
        (0..1_000).for_each(|turn| slots.turn(Duration::from_millis(turn), 1, 0));
        let now = Duration::from_secs(1);
        let seconds: Vec<u64> = (0..60).map(|_| slots.allot(now, Duration::from_millis(100), 2)).collect();
        assert!(
            seconds.chunks(20).zip(1..).all(|(chunk, at)| chunk.iter().all(|it| *it == at)),
            "{seconds:?}"
        );
        // What takes little stands beside it.
        assert_eq!(slots.allot(now, Duration::from_micros(20), 2), 4);
    }
}
