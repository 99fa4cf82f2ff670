//! One priority level: its seats, its queues, its bytes, and what is counted of it.
//!
//! In: requests that arrive, run, and give back. Out: who runs next. Never: other levels (`dispatcher.rs`),
//! or time that passes.

use std::collections::BTreeSet;

use crate::config::{LimitResponse, PriorityLevel};
use crate::demand::{Demand, Integrator};
use crate::fair::{FairQueues, Place, Waiter};
use crate::holding::{Holding, Parked};
use crate::limits::WAIT_EXPECTED_MAX;
use crate::price::{Moment, Seat};
use crate::rejection::RejectReason;
use crate::request::Work;
use crate::shares::{SeatBounds, Wish};
use crate::slots::Slots;
use crate::tally::Tally;

/// A level.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) config: PriorityLevel,
    /// It is not configured any more, and goes once it is empty.
    pub(crate) quiescing: bool,
    pub(crate) bounds: SeatBounds,
    pub(crate) current: u64,
    pub(crate) target: f64,
    pub(crate) queues: Option<FairQueues>,
    pub(crate) holding: Holding,
    /// Requests that wait, for their turn or for bytes; that run; and of these, that are worked on.
    pub(crate) waiting: u64,
    pub(crate) running: u64,
    pub(crate) working: u64,
    /// Those that are stored and have no seat meanwhile, and how many may be.
    pub(crate) at_store: u64,
    pub(crate) at_store_max: u64,
    /// Those that gave their seat up for some time, and want one again.
    pub(crate) returning: BTreeSet<u64>,
    pub(crate) seats: u64,
    pub(crate) integrator: Integrator,
    pub(crate) demand: Demand,
    pub(crate) slots: Slots,
    pub(crate) tally: Tally,
}

/// What becomes of a request that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Runs,
    Waits(Place),
    Refused(RejectReason),
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This one runs, of that queue, which was charged its work.
    Runs(Waiter, usize),
    /// Its flow has to give bytes back before.
    Parks(u64, Place),
    /// This one goes on.
    GoesOn(u64),
    Nobody,
}

impl Level {
    pub(crate) fn new(config: PriorityLevel, now: Moment) -> Level {
        let mut level = Level {
            quiescing: false,
            bounds: SeatBounds::default(),
            current: 0,
            target: 0.0,
            queues: None,
            holding: Holding::default(),
            waiting: 0,
            running: 0,
            working: 0,
            at_store: 0,
            at_store_max: 0,
            returning: BTreeSet::new(),
            seats: 0,
            integrator: Integrator::default(),
            demand: Demand::default(),
            slots: Slots::default(),
            tally: Tally::new(now),
            config: config.clone(),
        };
        level.configure(config);
        level
    }

    /// It is configured like that from now on. Who waits goes on waiting, also where nobody may begin to.
    pub(crate) fn configure(&mut self, config: PriorityLevel) {
        if let LimitResponse::Queue { dealer, .. } = config.response {
            match &mut self.queues {
                Some(queues) => queues.redeal(dealer),
                None => self.queues = Some(FairQueues::new(dealer)),
            }
        }
        self.config = config;
        self.quiescing = false;
    }

    pub(crate) fn is_exempt(&self) -> bool {
        self.config.response == LimitResponse::Exempt
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.running == 0
    }

    /// How many may be worked on: never less than its nominal share.
    pub(crate) fn limit(&self) -> u64 {
        if self.is_exempt() { u64::MAX } else { self.current.max(self.bounds.nominal) }
    }

    /// What it lent it wants back.
    pub(crate) fn wants_back(&self) -> bool {
        !self.is_exempt()
            && self.current < self.bounds.nominal
            && self.working + self.wanting() > self.current
    }

    /// A request that is at `work` is not worked on from now on, and does not want to be.
    pub(crate) fn works_no_more(&mut self, id: u64, work: Work) {
        match work {
            Work::Going => self.working -= 1,
            Work::AtStore => self.at_store -= 1,
            Work::Returning => drop(self.returning.remove(&id)),
            Work::Paused | Work::Done => {}
        }
    }

    /// Those that would be worked on if there were seats.
    fn wanting(&self) -> u64 {
        self.waiting + self.returning.len() as u64
    }

    pub(crate) fn wish(&self) -> Wish {
        Wish {
            bounds: self.bounds,
            exempt: self.is_exempt(),
            high_watermark: self.demand.high_watermark.max(self.integrator.highest()),
            smoothed: self.demand.smoothed.max(self.integrator.now()),
        }
    }

    /// A request arrives whose flow has that hash.
    ///
    /// - `longest`: how long a queue may be for it, where that is not what is configured.
    pub(crate) fn enter(
        &mut self,
        (hash, longest): (u64, Option<u64>),
        waiter: Waiter,
        bytes: u64,
        now: Moment,
    ) -> Entry {
        let LimitResponse::Queue { queue_length_max, .. } = self.config.response else {
            return self.enter_at_once(hash, bytes);
        };
        let longest = longest.unwrap_or(0).max(queue_length_max as u64);
        let parked = self.holding.parked(hash);
        if parked > 0 && parked >= longest {
            return Entry::Refused(self.bytes_held(hash));
        }
        let queues = self.queues.as_mut().expect("who queues has queues");
        queues.pass(now);
        let (queue, waiting) = queues.choose(hash);
        let takes = self.slots.takes(queues.ahead_of(queue), now);
        let too_long = waiting as u64 >= longest || takes.is_some_and(|takes| takes > WAIT_EXPECTED_MAX);
        if too_long && self.working >= self.current.max(self.bounds.nominal) {
            return Entry::Refused(RejectReason::QueueFull { waiting: waiting as u64 });
        }
        Entry::Waits(queues.push(queue, waiter))
    }

    fn enter_at_once(&self, hash: u64, bytes: u64) -> Entry {
        let (working, limit) = (self.working, self.limit());
        match () {
            () if self.is_exempt() => Entry::Runs,
            () if working >= limit => Entry::Refused(RejectReason::ConcurrencyLimit { working, limit }),
            () if !self.holding.fits(hash, bytes) => Entry::Refused(self.bytes_held(hash)),
            () => Entry::Runs,
        }
    }

    fn bytes_held(&self, hash: u64) -> RejectReason {
        RejectReason::BytesHeld { flow: self.holding.of(hash), pool: self.holding.pool() }
    }

    /// Whose turn it is; `flow_of` says of which flow a request is, and how many bytes it takes.
    pub(crate) fn turn(&mut self, flow_of: impl Fn(u64) -> (u64, u64), now: Moment) -> Turn {
        if self.working >= self.limit() {
            return Turn::Nobody;
        }
        if let Some(id) = self.returning.pop_first() {
            return Turn::GoesOn(id);
        }
        let Some(queues) = &mut self.queues else { return Turn::Nobody };
        queues.pass(now);
        // Those had their turn before.
        if let Some(parked) = self.holding.fitting() {
            queues.run_late(parked.place.queue, parked.waiter.work);
            return Turn::Runs(parked.waiter, parked.place.queue);
        }
        let Some((place, waiter)) = queues.next() else { return Turn::Nobody };
        self.tally.dispatch_clock = queues.clock();
        let (flow, bytes) = flow_of(waiter.id);
        if self.holding.fits(flow, bytes) {
            self.tally.latest_clock = queues.run(place);
            return Turn::Runs(waiter, place.queue);
        }
        queues.park(place);
        self.holding.park(flow, Parked { place, waiter, bytes });
        Turn::Parks(waiter.id, place)
    }

    /// Notes how much of it is used, after something has changed.
    pub(crate) fn note(&mut self, seat: Seat, now: Moment) {
        let used = self.working.max(seat.seats(self.holding.held()));
        let demand = used + self.wanting();
        self.integrator.set(demand, now);
        let limit = self.current.max(self.bounds.nominal);
        let waiting_most = match self.config.response {
            LimitResponse::Queue { dealer, queue_length_max } => dealer.deck() * queue_length_max as u64,
            LimitResponse::Exempt | LimitResponse::Reject => 1,
        };
        self.tally.seat_use.set(self.seats, limit, now);
        self.tally.running_use.set(self.running, limit, now);
        self.tally.waiting_use.set(self.waiting, waiting_most, now);
        self.tally.demand.set(demand, self.bounds.nominal, now);
    }
}
