//! A request as the machine keeps it, from when it arrives until all that it held is given back.
//!
//! In: what is known of it before it runs. Out: its state. Never: its body.

use std::time::Duration;

use crate::details::Details;
use crate::door::Comeback;
use crate::fair::Place;
use crate::limit::Access;
use crate::limits::WAIT_MAX;
use crate::matching::Flow;
use crate::price::{Moment, Price, SeatTime, nanos};

/// A request that arrives.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// By which it is called from now on; of two that are there at once never the same.
    pub id: u64,
    pub flow: Flow,
    pub price: Price,
    pub access: Access,
    /// What it takes as long as it is open, if it is a watch; its price is that of its start.
    pub watch_bytes: Option<u64>,
    /// What it comes back with, to a server that has just started.
    pub comeback: Option<Comeback>,
    pub wait_max: Duration,
    pub details: Details,
}

impl Arrival {
    /// A request that reads or writes, and is answered once.
    pub fn new(id: u64, flow: Flow, price: Price, access: Access, details: Details) -> Arrival {
        let (watch_bytes, comeback) = (None, None);
        Arrival { id, flow, price, access, watch_bytes, comeback, wait_max: WAIT_MAX, details }
    }
}

/// A request that is there.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) arrival: Arrival,
    pub(crate) arrived: Moment,
    pub(crate) until: Moment,
    /// As how many seats it was counted when it arrived; what a seat is may change meanwhile.
    pub(crate) seats: u64,
    pub(crate) state: State,
    /// Whether the door counts it among those inside.
    pub(crate) by_door: bool,
}

#[derive(Debug)]
pub(crate) enum State {
    AtDoor,
    /// For its turn.
    Queued(Place),
    /// For bytes, after its turn.
    Parked(Place),
    Running(Run),
    /// A watch whose initial state is sent.
    Watching,
}

/// What one that runs holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) began: Moment,
    /// Its queue, if its level has some.
    pub(crate) queue: Option<usize>,
    /// What its queue was charged.
    pub(crate) paid: SeatTime,
    /// What it has taken so far, and of that CPU time, in nanoseconds.
    pub(crate) taken: SeatTime,
    pub(crate) cpu: u64,
    pub(crate) work: Work,
    /// Bytes that its reader has not taken, and as how many its level counts them.
    pub(crate) left: u64,
    pub(crate) counted: u64,
    /// What it counted for before somebody outside was waited for.
    pub(crate) aside: Option<u64>,
    /// When its reader last took some.
    pub(crate) last: Moment,
    /// As how many seats it counts.
    pub(crate) seats: u64,
    /// How long it waited for somebody else, and since when it does.
    pub(crate) away: Duration,
    pub(crate) since: Moment,
}

impl Run {
    /// It has taken so much CPU time by now.
    pub(crate) fn came_to(&mut self, cpu: Duration) {
        let more = nanos(cpu).saturating_sub(self.cpu);
        self.cpu += more;
        self.taken = self.taken.saturating_add(more);
    }
}

/// Whom a request waits for in the middle of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Somebody outside of this server, however many wait for them.
    Other,
    /// The store, for which only so many of a level wait without a seat.
    Store,
}

/// How far the work on it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Going,
    /// Somebody else is waited for.
    Paused,
    /// The store is.
    AtStore,
    /// It waits for a seat to go on.
    Returning,
    Done,
}
