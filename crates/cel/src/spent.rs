//! What evaluating takes that no cost counts: a cost looks at the arguments of a call and not at what is in
//! them, and upstream's is a number of its own choosing for what it makes.
//!
//! In: steps about to be taken, bytes about to be made. Out: an error once there were too many. Never: known
//! to an expression's cost, which is upstream's to the unit.

use std::cell::Cell;

use crate::error::Error;
use crate::limits::{
    ELEMENT_BYTES, ENTRY_BYTES, HOLDER_BYTES, MADE_BYTES_MAX, MAP_BYTES, STEP_BYTES, STEPS_MAX, STEPS_PAID,
};

/// What one evaluation has spent, or several that belong together and keep each other's values.
#[derive(Debug)]
pub struct Spent {
    made: Cell<u64>,
    steps: Cell<u64>,
    /// Steps of the evaluations that are over which no cost has paid for.
    unpaid: Cell<u64>,
    steps_max: u64,
}

impl Default for Spent {
    fn default() -> Spent {
        Spent::of_steps(STEPS_MAX)
    }
}

impl Spent {
    /// - `steps_max`: how many steps all of them together may take besides those that are paid for.
    pub fn of_steps(steps_max: u64) -> Spent {
        Spent { made: Cell::new(0), steps: Cell::new(0), unpaid: Cell::new(0), steps_max }
    }

    /// An evaluation is over: each unit of its cost pays for [`STEPS_PAID`] of its steps, for nobody else's.
    pub fn pay(&self, cost: u64) {
        let own = self.steps.get().saturating_sub(self.unpaid.get());
        let unpaid = own.saturating_sub(cost.saturating_mul(STEPS_PAID));
        self.unpaid.set(self.unpaid.get().saturating_add(unpaid));
        self.steps.set(self.unpaid.get());
    }

    /// Steps that were taken and that nobody has paid for.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Those that were taken since this was last asked.
    pub(crate) fn take_steps(&self) -> usize {
        self.steps.take() as usize
    }

    /// Bytes that were made, and are still there as far as is known.
    pub fn made(&self) -> u64 {
        self.made.get()
    }

    /// Of what was made only `bytes` are still there.
    pub fn keep(&self, bytes: u64) {
        self.made.set(bytes);
    }

    /// Notes a step that looks at `bytes`.
    pub(crate) fn walk(&self, bytes: usize) -> Result<(), Error> {
        self.walk_all(1 + bytes / STEP_BYTES)
    }

    /// Notes `count` steps.
    pub(crate) fn walk_all(&self, count: usize) -> Result<(), Error> {
        self.steps.set(self.steps.get().saturating_add(count as u64));
        if self.steps.get() > self.steps_max { Err(Error::CostExceeded) } else { Ok(()) }
    }

    /// Notes what is about to be made.
    pub(crate) fn make(&self, bytes: usize) -> Result<(), Error> {
        self.made.set(self.made.get().saturating_add(bytes as u64));
        if self.made.get() > MADE_BYTES_MAX { Err(Error::CostExceeded) } else { Ok(()) }
    }

    /// As [`make`](Spent::make), elements of a list.
    pub(crate) fn make_elements(&self, count: usize) -> Result<(), Error> {
        self.make(count.saturating_mul(ELEMENT_BYTES))
    }

    /// As [`make`](Spent::make), a list of so many elements.
    pub(crate) fn make_list(&self, count: usize) -> Result<(), Error> {
        self.make(count.saturating_mul(ELEMENT_BYTES).saturating_add(HOLDER_BYTES))
    }

    /// As [`make`](Spent::make), a map of so many entries.
    pub(crate) fn make_map(&self, count: usize) -> Result<(), Error> {
        self.make(count.saturating_mul(ENTRY_BYTES).saturating_add(MAP_BYTES))
    }

    /// As [`make`](Spent::make), entries of a map.
    pub(crate) fn make_entries(&self, count: usize) -> Result<(), Error> {
        self.make(count.saturating_mul(ENTRY_BYTES))
    }
}
