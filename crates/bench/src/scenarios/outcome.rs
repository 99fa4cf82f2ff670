//! What comes out of a scenario.
//!
//! In: figures, and what some scenarios have besides. Out: an [`Outcome`]. Never: a figure of its own.

use crate::hostile::Measure;
use crate::report::Metrics;
use crate::series::MemorySeries;

/// What a scenario measured on one contender.
#[derive(Debug, Default)]
pub struct Outcome {
    pub metrics: Metrics,
    /// One for each run, where the scenario keeps any.
    pub series: Vec<MemorySeries>,
    /// What each row of the catalogue did, in the scenario that has one.
    pub rows: Vec<Measure>,
}

impl From<Metrics> for Outcome {
    fn from(metrics: Metrics) -> Outcome {
        Outcome { metrics, ..Outcome::default() }
    }
}
