//! What comes out of a scenario.
//!
//! In: figures, and what some scenarios have besides. Out: an [`Results`]. Never: a figure of its own.

use super::avalanche::Wave;
use crate::hostile::Measure;
use crate::report::Measurements;
use crate::series::MemorySeries;

/// What a scenario measured on one contender.
#[derive(Debug, Default)]
pub struct Results {
    pub metrics: Measurements,
    /// One for each run, where the scenario keeps any.
    pub series: Vec<MemorySeries>,
    /// One for each run of the scenario avalanche: what was asked for after each blow.
    pub waves: Vec<Vec<Wave>>,
    /// What each row of the catalogue did, in the scenario that has one.
    pub rows: Vec<Measure>,
    /// What happened that is no figure: how a server died, and what was not measured for it.
    pub mishaps: Vec<String>,
}

impl From<Measurements> for Results {
    fn from(metrics: Measurements) -> Results {
        Results { metrics, ..Results::default() }
    }
}
