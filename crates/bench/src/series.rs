//! Resident memory over time, phase by phase, of every process of a server.
//!
//! In: readings of `VmRSS`, each with its instant and phase. Out: phases' spans, peaks and last readings, and
//! JSON. Never: a reading that was not taken; phases that do not meet.

use std::time::Duration;

use serde_json::{Value, json};

use crate::units::mib;

/// What the clients do while memory is read, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// They create the pods.
    Load,
    /// Nothing.
    Quiet,
    /// All of them LIST.
    Storm,
    /// Nothing again.
    After,
}

/// One reading of all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Since the start of [`Phase::Load`].
    pub at: Duration,
    pub phase: Phase,
    /// Bytes, in the order of [`MemorySeries::processes`].
    pub resident: Vec<u64>,
}

/// The readings of one run. Where a phase ends and the next begins is one reading, kept in both.
#[derive(Clone, Debug, Default)]
pub struct MemorySeries {
    pub processes: Vec<&'static str>,
    /// In the order of time, and so of phases.
    pub samples: Vec<Sample>,
}

impl Phase {
    pub const ALL: [Phase; 4] = [Phase::Load, Phase::Quiet, Phase::Storm, Phase::After];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Quiet => "quiet",
            Phase::Storm => "storm",
            Phase::After => "after",
        }
    }
}

impl Sample {
    /// Bytes of all processes together.
    pub fn total(&self) -> u64 {
        self.resident.iter().sum()
    }
}

impl MemorySeries {
    pub fn of(&self, phase: Phase) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.phase == phase)
    }

    /// When `phase` began and ended.
    pub fn span(&self, phase: Phase) -> Option<(Duration, Duration)> {
        let first = self.of(phase).next()?;
        let last = self.of(phase).last()?;
        Some((first.at, last.at))
    }

    /// The first of the readings of `phase` with the greatest total.
    pub fn peak(&self, phase: Phase) -> Option<&Sample> {
        self.of(phase).reduce(|most, sample| if sample.total() > most.total() { sample } else { most })
    }

    /// The most that each process had by itself in `phase`; they need not have had it at the same time.
    pub fn own_peaks(&self, phase: Phase) -> Vec<u64> {
        let own = |at: usize| self.of(phase).filter_map(|sample| sample.resident.get(at)).max();
        (0..self.processes.len()).map(|at| own(at).copied().unwrap_or(0)).collect()
    }

    /// The last reading of `phase`.
    pub fn last(&self, phase: Phase) -> Option<&Sample> {
        self.of(phase).last()
    }

    /// Bytes that the total rose by in `phase`, from its first reading to its highest.
    pub fn growth(&self, phase: Phase) -> Option<u64> {
        let first = self.of(phase).next()?;
        Some(self.peak(phase)?.total() - first.total())
    }

    /// Columns of equal length: seconds, phase, and MiB of each process.
    pub fn json(&self) -> Value {
        let own = |sample: &Sample, at: usize| sample.resident.get(at).map(|bytes| thousandth(mib(*bytes)));
        let column = |at: usize| self.samples.iter().map(|sample| json!(own(sample, at))).collect::<Value>();
        let mib: serde_json::Map<String, Value> =
            self.processes.iter().enumerate().map(|(at, name)| (String::from(*name), column(at))).collect();
        json!({
            "seconds": self.samples.iter().map(|s| thousandth(s.at.as_secs_f64())).collect::<Vec<_>>(),
            "phase": self.samples.iter().map(|s| s.phase.name()).collect::<Vec<_>>(),
            "mib": mib,
        })
    }
}

fn thousandth(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `phase at_ms process process …` a line; resident in MiB.
    pub(crate) fn series(processes: &[&'static str], text: &str) -> MemorySeries {
        let sample = |line: &str| {
            let mut words = line.split_whitespace();
            let name = words.next().expect("a phase");
            let phase = Phase::ALL.into_iter().find(|phase| phase.name() == name).expect("a known phase");
            let mut numbers = words.map(|word| word.parse::<u64>().expect("a number"));
            let at = Duration::from_millis(numbers.next().expect("a time"));
            Sample { at, phase, resident: numbers.map(|mib| mib << 20).collect() }
        };
        MemorySeries { processes: processes.to_vec(), samples: text.lines().map(sample).collect() }
    }

    pub(crate) fn two() -> MemorySeries {
        series(
            &["etcd", "kube-apiserver"],
            "load 0 10 20\nload 100 30 60\nload 150 40 80\nquiet 150 40 80\nquiet 2150 40 70\n\
             storm 2150 40 70\nstorm 2250 60 200\nstorm 2350 50 210\nstorm 2400 45 100\n\
             after 2400 45 100\nafter 12400 45 90",
        )
    }

    #[test]
    fn phases_meet_and_have_the_time_between_their_first_and_last_reading() {
        let span = |phase| two().span(phase).map(|(from, to)| (from.as_millis(), to.as_millis()));
        assert_eq!(span(Phase::Load), Some((0, 150)));
        assert_eq!(span(Phase::Quiet), Some((150, 2150)));
        assert_eq!(span(Phase::Storm), Some((2150, 2400)));
        assert_eq!(span(Phase::After), Some((2400, 12400)));
        assert_eq!(MemorySeries::default().span(Phase::Load), None);
    }

    #[test]
    fn the_peak_is_of_the_sum_and_own_peaks_are_of_each() {
        let two = two();
        // Equal sums, 260 each: the first counts.
        assert_eq!(two.peak(Phase::Storm).unwrap().at.as_millis(), 2250);
        assert_eq!(two.own_peaks(Phase::Storm), [60 << 20, 210 << 20]);
        assert_eq!(two.last(Phase::Quiet).unwrap().total(), 110 << 20);
        assert_eq!(two.last(Phase::After).unwrap().total(), 135 << 20);
    }

    #[test]
    fn growth_counts_from_where_the_phase_began_and_is_never_negative() {
        assert_eq!(two().growth(Phase::Storm), Some(150 << 20));
        assert_eq!(two().growth(Phase::After), Some(0));
        assert_eq!(MemorySeries::default().growth(Phase::Storm), None);
    }

    #[test]
    fn json_has_columns_of_equal_length() {
        let json = two().json();
        assert_eq!(json["seconds"].as_array().unwrap().len(), 11);
        assert_eq!(json["seconds"][1], json!(0.1));
        assert_eq!(json["phase"][3], json!("quiet"));
        assert_eq!(json["mib"]["etcd"][2], json!(40.0));
        assert_eq!(json["mib"]["kube-apiserver"].as_array().unwrap().len(), 11);
    }
}
