//! A client's account with its past: how far its counters were at each tick.
//!
//! In: ticks. Out: what came since, and how heavy the client is. Owner: the ledger.

use std::sync::Arc;

use crate::account::{Account, Gauge, Gauges};
use crate::counts::{COUNTS, Count, Counts, add, since};
use crate::limits::{MINUTES, TICKS};

/// See the module's doc.
pub(crate) struct Row {
    pub account: Arc<Account>,
    // Rings: the oldest is where the next goes.
    ticks: [Counts; TICKS],
    minutes: [Counts; MINUTES],
    /// What it might have taken before it was known by name: the weight of the one whose place it took.
    inherited: u64,
}

/// Where the rings are: all rows have theirs at the same place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub tick: usize,
    pub minute: usize,
}

/// What a row says of itself.
#[derive(Clone)]
pub(crate) struct Sums {
    pub gauges: Gauges,
    pub minute: Counts,
    pub ten_minutes: Counts,
    pub total: Counts,
}

impl Row {
    pub fn new(account: Arc<Account>, inherited: u64) -> Row {
        Row { account, ticks: [[0; COUNTS]; TICKS], minutes: [[0; COUNTS]; MINUTES], inherited }
    }

    pub fn note_tick(&mut self, at: Place) {
        self.ticks[at.tick] = self.account.counts();
    }

    /// What it might have taken before counts half from then on, as what it did take is forgotten.
    pub fn note_minute(&mut self, at: Place) {
        self.minutes[at.minute] = self.account.counts();
        self.inherited /= 2;
    }

    pub fn sums(&self, at: Place) -> Sums {
        let total = self.account.counts();
        Sums {
            gauges: self.account.gauges(),
            minute: since(&total, &self.ticks[at.tick]),
            ten_minutes: since(&total, &self.minutes[at.minute]),
            total,
        }
    }

    /// What it took in the last ten minutes, and has open, in microseconds of CPU time as it were: a byte
    /// sent or held is a nanosecond, a request has its price at least, a watch is a few events.
    pub fn weight(&self, at: Place) -> u64 {
        const REQUEST: u64 = 20;
        const WATCH: u64 = 100;
        let (counts, gauges) =
            (since(&self.account.counts(), &self.minutes[at.minute]), self.account.gauges());
        let count = |of: Count| counts[of as usize];
        let gauge = |of: Gauge| u64::try_from(gauges[of as usize]).unwrap_or(0);
        let taken = (count(Count::CpuNanos) + count(Count::BytesSent)) / 1_000;
        let open = gauge(Gauge::HeldBytes) / 1_000 + gauge(Gauge::Watches) * WATCH;
        self.inherited + taken + open + count(Count::Requests) * REQUEST
    }

    /// Takes in what another had when, whose account has become a part of its own.
    pub fn take_in(&mut self, other: &Row) {
        self.ticks.iter_mut().zip(&other.ticks).for_each(|(own, other)| add(own, other));
        self.minutes.iter_mut().zip(&other.minutes).for_each(|(own, other)| add(own, other));
    }
}

impl Sums {
    pub fn add(&mut self, more: &Sums) {
        self.gauges.iter_mut().zip(more.gauges).for_each(|(to, more)| *to += more);
        add(&mut self.minute, &more.minute);
        add(&mut self.ten_minutes, &more.ten_minutes);
        add(&mut self.total, &more.total);
    }
}
