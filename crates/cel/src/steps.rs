//! What comparing costs that no cost counts: it looks at the lists that it is given, and not at what is in
//! them.
//!
//! In: steps. Out: an error once there were too many. Never: shared by two evaluations.

use std::cell::Cell;

use crate::error::Error;
use crate::limits::COMPARED_MAX;

/// Steps of one evaluation.
#[derive(Default)]
pub(crate) struct Steps(Cell<u64>);

impl Steps {
    /// Notes a comparison of `bytes`.
    ///
    /// # Errors
    /// If there were too many.
    pub fn compare(&self, bytes: usize) -> Result<(), Error> {
        self.0.set(self.0.get().saturating_add(1 + bytes as u64 / 64));
        if self.0.get() > COMPARED_MAX { Err(Error::CostExceeded) } else { Ok(()) }
    }
}
