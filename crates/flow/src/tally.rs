//! What is counted of a level, and of each schema in it.
//!
//! In: what happens. Out: numbers. Never: how a metric is called (`metrics.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::histogram::{Histogram, Timed};
use crate::price::Moment;

const WAIT_SECONDS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const QUEUE_LENGTHS: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const SEATS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
const SEAT_USE: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const REQUEST_USE: &[f64] = &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const DEMAND: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];
pub(crate) const READ_WRITE_USE: &[f64] =
    &[0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

/// Of one schema.
#[derive(Clone, Debug)]
pub(crate) struct SchemaTally {
    pub(crate) waiting: u64,
    pub(crate) waiting_seats: u64,
    pub(crate) running: u64,
    pub(crate) running_seats: u64,
    pub(crate) dispatched: u64,
    /// That turns were charged, in nanoseconds.
    pub(crate) cpu: u64,
    // reason -> requests
    pub(crate) rejected: BTreeMap<&'static str, u64>,
    /// Turns that came when there was no room.
    pub(crate) no_room: u64,
    pub(crate) waited_to_run: Histogram,
    pub(crate) waited_in_vain: Histogram,
    pub(crate) ran: Histogram,
    pub(crate) watch_started: Histogram,
    pub(crate) queue_lengths: Histogram,
    pub(crate) seats: Histogram,
}

impl SchemaTally {
    fn new() -> SchemaTally {
        SchemaTally {
            waiting: 0,
            waiting_seats: 0,
            running: 0,
            running_seats: 0,
            dispatched: 0,
            cpu: 0,
            rejected: BTreeMap::new(),
            no_room: 0,
            waited_to_run: Histogram::new(WAIT_SECONDS),
            waited_in_vain: Histogram::new(WAIT_SECONDS),
            ran: Histogram::new(WAIT_SECONDS),
            watch_started: Histogram::new(WAIT_SECONDS),
            queue_lengths: Histogram::new(QUEUE_LENGTHS),
            seats: Histogram::new(SEATS),
        }
    }
}

/// Of one level.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) dispatched: u64,
    pub(crate) rejected: u64,
    pub(crate) timed_out: u64,
    pub(crate) cancelled: u64,
    /// Readers that stood still and gave way.
    pub(crate) gave_way: u64,
    /// The level's clock at the last turn, and the clock of the queue that had it.
    pub(crate) dispatch_clock: u64,
    pub(crate) latest_clock: u64,
    // schema -> its tally
    pub(crate) schemas: BTreeMap<Arc<str>, SchemaTally>,
    pub(crate) seat_use: Timed,
    pub(crate) waiting_use: Timed,
    pub(crate) running_use: Timed,
    pub(crate) demand: Timed,
}

impl Tally {
    pub(crate) fn new(now: Moment) -> Tally {
        Tally {
            dispatched: 0,
            rejected: 0,
            timed_out: 0,
            cancelled: 0,
            gave_way: 0,
            dispatch_clock: 0,
            latest_clock: 0,
            schemas: BTreeMap::new(),
            seat_use: Timed::new(SEAT_USE, now),
            waiting_use: Timed::new(REQUEST_USE, now),
            running_use: Timed::new(REQUEST_USE, now),
            demand: Timed::new(DEMAND, now),
        }
    }

    pub(crate) fn of(&mut self, schema: &Arc<str>) -> &mut SchemaTally {
        self.schemas.entry(schema.clone()).or_insert_with(SchemaTally::new)
    }
}
