//! The clock of an ideal fair queue, which serves all queues that have work at once, each with the same part.
//!
//! In: how much work was done. Out: how far the clock is: it moves by that work divided by the queues that
//! the ideal one still serves. Never: whose turn it is.

use std::collections::BTreeSet;

use crate::price::{Moment, SeatTime, nanos};

/// An ideal fair queue.
#[derive(Debug, Default)]
pub(crate) struct Fluid {
    clock: u64,
    // (by when it is through with a queue, queue), only those it is not through with
    busy: BTreeSet<(u64, usize)>,
    /// Work that was too little to move the clock.
    rest: u64,
}

impl Fluid {
    pub(crate) fn clock(&self) -> u64 {
        self.clock
    }

    /// It is through with that queue by then.
    pub(crate) fn set(&mut self, queue: usize, (before, end): (u64, u64)) {
        self.busy.remove(&(before, queue));
        if end > self.clock {
            self.busy.insert((end, queue));
        }
    }

    /// So much work was done.
    ///
    /// Cost: a step for each queue that it gets through with.
    pub(crate) fn serve(&mut self, work: SeatTime) {
        let mut work = work.saturating_add(self.rest);
        self.rest = 0;
        while let Some((end, _)) = self.busy.first().copied() {
            let queues = self.busy.len() as u64;
            let whole = (end - self.clock).saturating_mul(queues);
            if whole > work {
                self.clock += work / queues;
                self.rest = work % queues;
                return;
            }
            work -= whole;
            self.jump(end);
        }
    }

    /// Nothing is under way: its clock goes to where the next one begins.
    pub(crate) fn jump(&mut self, clock: u64) {
        self.clock = self.clock.max(clock);
        while self.busy.first().is_some_and(|(end, _)| *end <= self.clock) {
            self.busy.pop_first();
        }
    }
}

/// What is under way, and how much of its work is done.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    pub(crate) count: u64,
    /// Of all of them, by their prices.
    work: u128,
    /// The sum of when they began.
    began: u128,
    /// Of those that are over.
    over: u128,
    told: u128,
    now: u64,
}

impl UnderWay {
    /// It is later: the work that was done meanwhile. Each does a second of work in a second, and no more
    /// than its price.
    pub(crate) fn pass(&mut self, now: Moment) -> SeatTime {
        self.now = self.now.max(nanos(now));
        let going = (u128::from(self.now) * u128::from(self.count)).saturating_sub(self.began).min(self.work);
        let done = (self.over + going).max(self.told);
        let more = done - self.told;
        self.told = done;
        u64::try_from(more).unwrap_or(u64::MAX)
    }

    pub(crate) fn begin(&mut self, work: SeatTime) {
        self.count += 1;
        self.work += u128::from(work);
        self.began += u128::from(self.now);
    }

    /// One is over that began then.
    pub(crate) fn end(&mut self, work: SeatTime, began: Moment) {
        self.count -= 1;
        self.work -= u128::from(work);
        self.began -= u128::from(nanos(began));
        self.over += u128::from(work);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn work_is_divided_among_those_that_are_served() {
        let mut fluid = Fluid::default();
        fluid.set(0, (0, 10));
        fluid.set(1, (0, 30));
        fluid.serve(9);
        fluid.serve(2);
        assert_eq!(fluid.clock(), 5, "11 of two");
        fluid.serve(9 + 10);
        assert_eq!(fluid.clock(), 20, "the first is through at 10, the other goes on alone");
        fluid.serve(1_000);
        assert_eq!(fluid.clock(), 30, "it is through with all");
        fluid.set(0, (10, 40));
        fluid.jump(50);
        fluid.serve(7);
        assert_eq!(fluid.clock(), 50);
    }

    #[test]
    fn what_is_under_way_does_no_more_than_its_price() {
        let at = Duration::from_nanos;
        let mut under_way = UnderWay::default();
        assert_eq!(under_way.pass(at(5)), 0);
        under_way.begin(10);
        assert_eq!((under_way.pass(at(9)), under_way.pass(at(9))), (4, 0));
        under_way.begin(100);
        assert_eq!(under_way.pass(at(11)), 4);
        under_way.end(10, at(5));
        assert_eq!(under_way.pass(at(11)), 4, "the rest of the one that is over");
        assert_eq!((under_way.pass(at(1_000)), under_way.pass(at(2_000))), (98, 0));
        under_way.end(100, at(9));
        assert_eq!((under_way.pass(at(2_000)), under_way.count), (0, 0));
    }
}
