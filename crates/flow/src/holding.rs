//! The bytes of one level: which flow holds how many, and who stands still.
//!
//! In: bytes that are taken and given back. Out: whether a flow may hold more, who waits for bytes, who gives
//! way. Never: what is in them.
//!
//! A flow may hold no more than is free beside it. One alone has half of the level's bytes, so that whoever
//! comes next finds half of them; two have a third each. A reader that stands still fills what its own flow
//! may hold, and nobody else's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::fair::{Place, Waiter};
use crate::limits::{LOOK_AGAIN, STILL, STILL_LOOKED_AT, WIDEST_PART};
use crate::price::Moment;

/// A request that waits for bytes, not for its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parked {
    pub(crate) place: Place,
    pub(crate) waiter: Waiter,
    pub(crate) bytes: u64,
}

#[derive(Debug, Default)]
struct Holder {
    held: u64,
    requests: usize,
    // arrival -> who waits for bytes, the first first
    parked: BTreeMap<u64, Parked>,
    /// What has to be free beside what the level holds, for the first of them.
    need: Option<u64>,
}

/// The bytes of a level.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    pool: u64,
    held: u64,
    // hash of the flow -> what it holds; only flows that hold or wait
    holders: HashMap<u64, Holder>,
    // (what the first that is parked needs, flow)
    needs: BTreeSet<(u64, u64)>,
    // (when its reader last took something, request, flow), those that hold
    readers: BTreeSet<(Moment, u64, u64)>,
    /// When it was last looked who stands still.
    looked: Moment,
}

impl Holding {
    /// The level has so many bytes from now on. What is held stays; who asks for more waits.
    pub(crate) fn resize(&mut self, pool: u64) {
        if self.pool == pool {
            return;
        }
        self.pool = pool;
        // As a part of the pool, what is too wide for it counts for another number.
        let flows: Vec<u64> = self.needs.iter().map(|(_, flow)| *flow).collect();
        flows.into_iter().for_each(|flow| self.reckon(flow));
    }

    pub(crate) fn pool(&self) -> u64 {
        self.pool
    }

    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// How many bytes a request counts for.
    pub(crate) fn counted(&self, bytes: u64) -> u64 {
        bytes.min(self.pool / WIDEST_PART)
    }

    fn need(&self, flow: u64, bytes: u64) -> u64 {
        let held = self.holders.get(&flow).map_or(0, |holder| holder.held);
        held.saturating_add(self.counted(bytes).saturating_mul(2))
    }

    /// Whether that flow may hold so many more. What holds nothing waits for no bytes.
    pub(crate) fn fits(&self, flow: u64, bytes: u64) -> bool {
        bytes == 0 || self.need(flow, bytes) <= self.pool.saturating_sub(self.held)
    }

    /// What that flow holds.
    pub(crate) fn of(&self, flow: u64) -> u64 {
        self.holders.get(&flow).map_or(0, |holder| holder.held)
    }

    /// How many of that flow wait for bytes.
    pub(crate) fn parked(&self, flow: u64) -> u64 {
        self.holders.get(&flow).map_or(0, |holder| holder.parked.len() as u64)
    }

    /// A request of the flow holds bytes from now on.
    pub(crate) fn take(&mut self, flow: u64, id: u64, bytes: u64, now: Moment) {
        let holder = self.holders.entry(flow).or_default();
        holder.held += bytes;
        holder.requests += 1;
        self.held += bytes;
        self.readers.insert((now, id, flow));
        self.reckon(flow);
    }

    /// Its reader has taken some.
    pub(crate) fn give(&mut self, flow: u64, id: u64, bytes: u64, (last, now): (Moment, Moment)) {
        self.lessen(flow, bytes);
        self.readers.remove(&(last, id, flow));
        self.readers.insert((now, id, flow));
        self.reckon(flow);
    }

    /// What it holds is counted elsewhere for a while, and no reader is waited for.
    pub(crate) fn set_aside(&mut self, flow: u64, id: u64, bytes: u64, last: Moment) {
        self.lessen(flow, bytes);
        self.readers.remove(&(last, id, flow));
        self.reckon(flow);
    }

    /// It holds that again, though there be no bytes for it.
    pub(crate) fn take_again(&mut self, flow: u64, id: u64, bytes: u64, (last, now): (Moment, Moment)) {
        let holder = self.holders.get_mut(&flow).expect("who holds is known");
        holder.held += bytes;
        self.held += bytes;
        self.readers.remove(&(last, id, flow));
        self.readers.insert((now, id, flow));
        self.reckon(flow);
    }

    /// It is gone, and with it what it held.
    pub(crate) fn leave(&mut self, flow: u64, id: u64, bytes: u64, last: Moment) {
        self.lessen(flow, bytes);
        self.readers.remove(&(last, id, flow));
        let holder = self.holders.get_mut(&flow).expect("who holds is known");
        holder.requests -= 1;
        self.reckon(flow);
    }

    fn lessen(&mut self, flow: u64, bytes: u64) {
        let holder = self.holders.get_mut(&flow).expect("who holds is known");
        holder.held -= bytes;
        self.held -= bytes;
    }

    /// A request waits until there are bytes for its flow.
    pub(crate) fn park(&mut self, flow: u64, parked: Parked) {
        self.holders.entry(flow).or_default().parked.insert(parked.place.arrival, parked);
        self.reckon(flow);
    }

    /// One that waited for bytes is gone.
    pub(crate) fn unpark(&mut self, flow: u64, place: Place) -> Option<Parked> {
        let parked = self.holders.get_mut(&flow)?.parked.remove(&place.arrival);
        self.reckon(flow);
        parked
    }

    /// One whose flow may hold its bytes now.
    pub(crate) fn fitting(&mut self) -> Option<Parked> {
        let (need, flow) = *self.needs.first()?;
        if need > self.pool.saturating_sub(self.held) {
            return None;
        }
        let (_, parked) = self.holders.get_mut(&flow)?.parked.pop_first()?;
        self.reckon(flow);
        Some(parked)
    }

    /// Notes what the flow's first parked request needs now, and forgets a flow that neither holds nor waits.
    fn reckon(&mut self, flow: u64) {
        let first = self.holders.get(&flow).and_then(|holder| holder.parked.values().next());
        let need = first.map(|first| first.bytes).map(|bytes| self.need(flow, bytes));
        let Some(holder) = self.holders.get_mut(&flow) else { return };
        if let Some(before) = std::mem::replace(&mut holder.need, need) {
            self.needs.remove(&(before, flow));
        }
        self.needs.extend(need.map(|need| (need, flow)));
        if holder.requests == 0 && holder.parked.is_empty() {
            self.holders.remove(&flow);
        }
    }

    /// The request whose reader stands still and gives way: another flow waits for bytes, and its own holds
    /// more than where all had the same.
    pub(crate) fn gives_way(&mut self, now: Moment) -> Option<u64> {
        self.looked = now;
        let (_, waiting) = *self.needs.first()?;
        let fair = self.pool / (self.holders.len() as u64 + 1);
        let still = self.readers.iter().take_while(|(last, ..)| now.saturating_sub(*last) >= STILL);
        let over = |flow: u64| flow != waiting && self.of(flow) > fair;
        still.take(STILL_LOOKED_AT).find(|(_, _, flow)| over(*flow)).map(|(_, id, _)| *id)
    }

    /// When [`Holding::gives_way`] may next find one.
    pub(crate) fn still_at(&self) -> Option<Moment> {
        let (last, ..) = self.needs.first().and(self.readers.first())?;
        let due = *last + STILL;
        Some(if due > self.looked { due } else { self.looked + LOOK_AGAIN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Moment = Duration::ZERO;

    #[test]
    fn a_flow_holds_no_more_than_is_free_beside_it() {
        let mut holding = Holding::default();
        holding.resize(1_000);
        let mut taken = |flow: u64| {
            let mut count = 0;
            while holding.fits(flow, 10) {
                holding.take(flow, flow * 1_000 + count, 10, NOW);
                count += 1;
            }
            count * 10
        };
        assert_eq!([taken(1), taken(2), taken(3)], [500, 250, 120]);
    }

    #[test]
    fn who_waits_for_bytes_goes_on_when_they_are_there() {
        let mut holding = Holding::default();
        holding.resize(100);
        holding.take(1, 1, 25, NOW);
        holding.take(1, 2, 25, NOW);
        assert!(!holding.fits(1, 10) && holding.fits(2, 10));
        let place = Place { queue: 0, arrival: 3 };
        holding.park(1, Parked { place, waiter: Waiter { id: 3, work: 1 }, bytes: 10 });
        assert!(holding.fitting().is_none());
        holding.give(1, 1, 20, (NOW, Duration::from_secs(1)));
        assert_eq!(holding.fitting().unwrap().waiter.id, 3);
        holding.leave(1, 1, 5, Duration::from_secs(1));
        holding.leave(1, 2, 25, NOW);
        assert!(holding.holders.is_empty() && holding.readers.is_empty() && holding.needs.is_empty());
    }

    #[test]
    fn what_is_set_aside_is_free_for_others_and_taken_again_at_once() {
        let mut holding = Holding::default();
        holding.resize(100);
        holding.take(1, 1, 25, NOW);
        holding.take(1, 2, 35, NOW);
        assert!(!holding.fits(2, 30));
        holding.set_aside(1, 1, 25, NOW);
        assert!(holding.fits(2, 30));
        holding.take(2, 3, 30, NOW);
        holding.take_again(1, 1, 25, (NOW, NOW));
        assert_eq!((holding.held(), holding.of(1)), (90, 60));
        [(1, 1, 25), (1, 2, 35), (2, 3, 30)].into_iter().for_each(|(flow, id, bytes)| {
            holding.leave(flow, id, bytes, NOW);
        });
        assert!(holding.holders.is_empty() && holding.readers.is_empty() && holding.held() == 0);
    }

    #[test]
    fn a_reader_that_stands_still_gives_way_to_another_flow_alone() {
        let mut holding = Holding::default();
        holding.resize(100);
        (0..2).for_each(|id| holding.take(1, id, 25, NOW));
        (2..4).for_each(|id| holding.take(2, id, 12, NOW));
        let parked =
            |id| Parked { place: Place { queue: 0, arrival: id }, waiter: Waiter { id, work: 1 }, bytes: 20 };
        holding.park(1, parked(9));
        assert_eq!(holding.gives_way(STILL), None);
        holding.unpark(1, parked(9).place);
        holding.park(3, parked(10));
        assert_eq!(holding.gives_way(STILL - Duration::from_millis(1)), None);
        assert_eq!(holding.gives_way(STILL), Some(0));
    }
}
