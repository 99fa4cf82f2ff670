//! Queues of one level that take turns by virtual time.
//!
//! In: waiting requests with their work. Out: whose turn it is. Never: whether there is room for it
//! (`level.rs`).
//!
//! A queue's clock says when its next request begins where all queues that have work are served alike: it
//! moves by the work of what the queue has begun. The level's clock is that of an ideal fair queue that has
//! done as much work as was done here (`fluid.rs`), also while a request runs. Of the queues whose clock has
//! been reached the one goes first whose next request would end first (WF²Q): on one seat none is behind the
//! ideal by more than the largest price. What a request took beyond its price moves its queue's clock
//! afterwards.

use std::collections::{BTreeMap, BTreeSet};

use crate::dealer::Dealer;
use crate::fluid::{Fluid, UnderWay};
use crate::limits::AHEAD_MAX;
use crate::price::{Moment, SeatTime};

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) id: u64,
    pub(crate) work: SeatTime,
}

/// Where a request waits: its queue, and its place in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) queue: usize,
    pub(crate) arrival: u64,
}

#[derive(Debug, Default)]
struct Queue {
    // arrival -> who waits, the first first
    waiting: BTreeMap<u64, Waiter>,
    work: u64,
    clock: u64,
    running: usize,
    /// Requests that had their turn, and wait for room.
    parked: usize,
    /// By when an ideal queue is through with it.
    through: u64,
    /// Where it stands among the queues that wait.
    stands: Option<Stands>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// By when its next request would end.
    Reached(u64),
    /// By when it begins.
    Ahead(u64),
}

/// What is seen of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueSeen {
    pub(crate) waiting: usize,
    pub(crate) running: usize,
    pub(crate) clock: SeatTime,
    pub(crate) work: SeatTime,
}

/// The queues of a level.
#[derive(Debug)]
pub(crate) struct FairQueues {
    dealer: Dealer,
    queues: Vec<Queue>,
    // (virtual end, queue)
    reached: BTreeSet<(u64, usize)>,
    // (virtual start, queue)
    ahead: BTreeSet<(u64, usize)>,
    fluid: Fluid,
    under_way: UnderWay,
    dealt: usize,
    arrivals: u64,
}

impl FairQueues {
    pub(crate) fn new(dealer: Dealer) -> FairQueues {
        let mut queues = FairQueues {
            dealer,
            queues: Vec::new(),
            reached: BTreeSet::new(),
            ahead: BTreeSet::new(),
            fluid: Fluid::default(),
            under_way: UnderWay::default(),
            dealt: 0,
            arrivals: 0,
        };
        queues.redeal(dealer);
        queues
    }

    /// Deals otherwise from now on. Queues that are too many are dealt no more, and go when they are empty.
    pub(crate) fn redeal(&mut self, dealer: Dealer) {
        self.dealer = dealer;
        let wanted = dealer.deck() as usize;
        self.queues.resize_with(self.queues.len().max(wanted), Queue::default);
        self.shrink();
    }

    fn shrink(&mut self) {
        let idle = |queue: &Queue| queue.waiting.is_empty() && queue.running + queue.parked == 0;
        while self.queues.len() > self.dealer.deck() as usize && self.queues.last().is_some_and(idle) {
            self.queues.pop();
        }
    }

    /// The queue with the least work of the flow's hand, and how many wait there.
    pub(crate) fn choose(&mut self, hash: u64) -> (usize, usize) {
        let mut hand = self.dealer.deal(hash);
        // Of equal ones another each time.
        let turn = self.dealt % hand.len();
        hand.rotate_left(turn);
        self.dealt = self.dealt.wrapping_add(1);
        let queue = hand.into_iter().min_by_key(|at| self.queues[*at].work).expect("a hand is not empty");
        (queue, self.queues[queue].waiting.len())
    }

    /// What is begun before somebody who comes into a queue now: its own work, and as much of each other that
    /// waits.
    pub(crate) fn ahead_of(&self, queue: usize) -> u128 {
        u128::from(self.queues[queue].work) * u128::from(self.active())
    }

    /// How many wait in a queue.
    pub(crate) fn length(&self, queue: usize) -> usize {
        self.queues[queue].waiting.len()
    }

    /// It is later: what is under way has gone on.
    pub(crate) fn pass(&mut self, now: Moment) {
        let work = self.under_way.pass(now);
        self.serve(work);
    }

    fn serve(&mut self, work: SeatTime) {
        self.fluid.serve(work);
        self.reach();
    }

    /// Puts a request last.
    pub(crate) fn push(&mut self, queue: usize, waiter: Waiter) -> Place {
        self.arrivals += 1;
        let place = Place { queue, arrival: self.arrivals };
        let clock = self.clock();
        let at = &mut self.queues[queue];
        if at.waiting.is_empty() {
            at.clock = at.clock.max(clock);
        }
        at.work += waiter.work;
        at.waiting.insert(place.arrival, waiter);
        self.stand(queue);
        place
    }

    /// Takes a request out that leaves.
    pub(crate) fn remove(&mut self, place: Place) -> Option<Waiter> {
        let queue = self.queues.get_mut(place.queue)?;
        let waiter = queue.waiting.remove(&place.arrival)?;
        queue.work -= waiter.work;
        self.stand(place.queue);
        self.shrink();
        Some(waiter)
    }

    /// Whose turn it is.
    pub(crate) fn next(&mut self) -> Option<(Place, Waiter)> {
        if self.reached.is_empty() && self.under_way.count == 0 {
            let (start, _) = *self.ahead.first()?;
            self.fluid.jump(start);
            self.reach();
        }
        // While others work no seat stays free, either.
        let (_, queue) = *self.reached.first().or(self.ahead.first())?;
        let (arrival, waiter) = self.queues[queue].waiting.first_key_value()?;
        Some((Place { queue, arrival: *arrival }, *waiter))
    }

    /// The one whose turn it is runs; by its queue's clock it begins at what is returned.
    pub(crate) fn run(&mut self, place: Place) -> SeatTime {
        let queue = &mut self.queues[place.queue];
        let began = queue.clock;
        let waiter = queue.waiting.remove(&place.arrival).expect("it is the first");
        queue.work -= waiter.work;
        self.begin(place.queue, waiter.work);
        began
    }

    /// Takes the one out whose turn it is until there is room for it, so that it does not keep its queue from
    /// going.
    pub(crate) fn park(&mut self, place: Place) {
        self.queues[place.queue].parked += 1;
        self.remove(place);
    }

    /// One that had its turn leaves without it.
    pub(crate) fn unpark(&mut self, queue: usize) {
        self.queues[queue].parked -= 1;
        self.shrink();
    }

    /// One runs that had its turn before, and was taken out until there was room for it.
    pub(crate) fn run_late(&mut self, queue: usize, work: SeatTime) {
        self.queues[queue].parked -= 1;
        self.begin(queue, work);
    }

    fn begin(&mut self, queue: usize, work: SeatTime) {
        let at = &mut self.queues[queue];
        at.running += 1;
        at.clock = at.clock.saturating_add(work);
        self.under_way.begin(work);
        self.stand(queue);
    }

    fn active(&self) -> u64 {
        (self.reached.len() + self.ahead.len()).max(1) as u64
    }

    /// What a request of that queue took beyond its price, or less than that.
    pub(crate) fn settle(&mut self, queue: usize, beyond: i64) {
        let clock = self.clock();
        let Some(at) = self.queues.get_mut(queue) else { return };
        let settled = at.clock.saturating_add_signed(beyond);
        // What was not used cannot be saved for later, and what was used too much is forgiven at some point.
        at.clock = match beyond > 0 {
            true => settled.min(at.clock.max(clock.saturating_add(AHEAD_MAX))),
            false => settled.max(at.clock.min(clock)),
        };
        self.stand(queue);
    }

    /// One that ran is done, which was charged that work when it began.
    pub(crate) fn done(&mut self, queue: usize, work: SeatTime, began: Moment) {
        self.under_way.end(work, began);
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.running -= 1;
        }
        self.shrink();
    }

    /// The level's clock.
    pub(crate) fn clock(&self) -> SeatTime {
        self.fluid.clock()
    }

    /// Each queue, as it is seen.
    pub(crate) fn seen(&self) -> impl Iterator<Item = QueueSeen> {
        self.queues.iter().map(|queue| QueueSeen {
            waiting: queue.waiting.len(),
            running: queue.running,
            clock: queue.clock,
            work: queue.work,
        })
    }

    /// Those whose clock has been reached.
    fn reach(&mut self) {
        let clock = self.clock();
        while let Some((start, queue)) = self.ahead.first().copied().filter(|(start, _)| *start <= clock) {
            debug_assert_eq!(start, self.queues[queue].clock);
            self.stand(queue);
        }
    }

    /// Puts a queue where it stands now.
    fn stand(&mut self, at: usize) {
        let clock = self.clock();
        let queue = &mut self.queues[at];
        let through = queue.clock.saturating_add(queue.work);
        self.fluid.set(at, (queue.through, through));
        queue.through = through;
        match queue.stands.take() {
            Some(Stands::Reached(end)) => drop(self.reached.remove(&(end, at))),
            Some(Stands::Ahead(start)) => drop(self.ahead.remove(&(start, at))),
            None => {}
        }
        let Some((_, first)) = queue.waiting.first_key_value() else { return };
        if queue.clock <= clock {
            let end = queue.clock.saturating_add(first.work);
            queue.stands = Some(Stands::Reached(end));
            self.reached.insert((end, at));
        } else {
            queue.stands = Some(Stands::Ahead(queue.clock));
            self.ahead.insert((queue.clock, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dealer::flow_hash;

    fn queues(count: u64) -> FairQueues {
        FairQueues::new(Dealer::new(count, 1).unwrap())
    }

    fn order(queues: &mut FairQueues) -> Vec<u64> {
        std::iter::from_fn(|| {
            let (place, waiter) = queues.next()?;
            queues.run(place);
            queues.serve(waiter.work);
            Some(waiter.id)
        })
        .collect()
    }

    #[test]
    fn one_who_asks_for_much_and_one_who_asks_for_little_share_alike() {
        let mut queues = queues(2);
        for id in 0..4 {
            queues.push(0, Waiter { id, work: 30 });
        }
        for id in 10..22 {
            queues.push(1, Waiter { id, work: 10 });
        }
        let order = order(&mut queues);
        // After each of the large ones there have been three of the small ones, give or take one.
        let mut small = 0;
        for id in order {
            match id < 10 {
                true => assert!((3 * id..=3 * id + 3).contains(&small), "{id} after {small}"),
                false => small += 1,
            }
        }
    }

    #[test]
    fn who_leaves_while_waiting_leaves_no_hole() {
        let mut queues = queues(3);
        let places: Vec<Place> =
            (0..9).map(|id| queues.push(id as usize % 3, Waiter { id, work: 5 })).collect();
        for at in [0, 4, 8] {
            assert_eq!(queues.remove(places[at]).unwrap().id, at as u64);
            assert_eq!(queues.remove(places[at]), None);
        }
        let mut left = order(&mut queues);
        left.sort_unstable();
        assert_eq!(left, [1, 2, 3, 5, 6, 7]);
        assert_eq!(queues.next(), None);
    }

    #[test]
    fn what_was_not_used_is_given_back_and_what_was_used_is_charged() {
        // How many of the other queue go before the next request of one whose first took more, or less, than
        // it was to.
        let before = |beyond: i64| {
            let mut queues = queues(2);
            let first = queues.push(0, Waiter { id: 0, work: 100 });
            queues.push(0, Waiter { id: 1, work: 10 });
            for id in 100..140 {
                queues.push(1, Waiter { id, work: 10 });
            }
            queues.run(first);
            queues.serve(100);
            queues.settle(0, beyond);
            order(&mut queues).iter().position(|id| *id == 1).unwrap()
        };
        let [less, just, more] = [-100, 0, 100].map(before);
        assert!(less < just && just < more && more < 40, "{less} {just} {more}");
        assert!(before(i64::MAX) == 40);
    }

    #[test]
    fn fewer_queues_take_nobody_and_go_when_they_are_empty() {
        let mut queues = queues(8);
        let place = queues.push(7, Waiter { id: 1, work: 1 });
        queues.redeal(Dealer::new(2, 1).unwrap());
        assert_eq!(queues.queues.len(), 8);
        assert!((0..100).all(|flow| queues.choose(flow_hash("s", &flow.to_string())).0 < 2));
        let (next, _) = queues.next().unwrap();
        assert_eq!(next, place);
        queues.run(next);
        assert_eq!(queues.queues.len(), 8);
        queues.done(7, 1, Moment::ZERO);
        assert_eq!(queues.queues.len(), 2);
    }
}
