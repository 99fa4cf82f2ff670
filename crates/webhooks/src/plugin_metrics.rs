//! How long admission plugins took, each of them and all of a step, by upstream's names.
//!
//! In: what a plugin, or a step, took, and what came of it. Out: series. Never: a lock, or more series than
//! there are plugins: what is written here is written by every write.
//!
//! Source: apiserver v0.36.3 `pkg/admission/metrics/metrics.go`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use forebay_policy::AdmissionOperation;

use crate::limits::PLUGINS_MAX;
use crate::metrics::Durations;

/// Upper bounds of the buckets, in seconds; upstream's.
pub const PLUGIN_BOUNDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

const STEPS: [&str; 2] = ["admit", "validate"];
const OPERATIONS: [AdmissionOperation; 4] = [
    AdmissionOperation::Create,
    AdmissionOperation::Update,
    AdmissionOperation::Delete,
    AdmissionOperation::Connect,
];

/// What a plugin is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginStep {
    Admit,
    Validate,
}

/// See the module's doc.
pub struct PluginMetrics {
    steps: PluginRow,
    // By the place of a plugin, <= PLUGINS_MAX.
    plugins: Box<[PluginRow]>,
}

/// What one series says.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginCounted {
    /// Empty of a whole step.
    pub name: &'static str,
    pub step: &'static str,
    pub operation: &'static str,
    pub is_rejected: bool,
    pub durations: Durations<{ PLUGIN_BOUNDS.len() }>,
}

#[derive(Default)]
struct PluginRow {
    name: OnceLock<&'static str>,
    // step, operation, rejected
    series: [[[Counts; 2]; OPERATIONS.len()]; STEPS.len()],
}

#[derive(Default)]
struct Counts {
    // The last one of what is beyond all bounds.
    buckets: [AtomicU64; PLUGIN_BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Default for PluginMetrics {
    fn default() -> PluginMetrics {
        let plugins = (0..PLUGINS_MAX).map(|_| PluginRow::default()).collect();
        PluginMetrics { steps: PluginRow::default(), plugins }
    }
}

impl PluginMetrics {
    /// The plugin at `place` took so long.
    ///
    /// - `is_rejected`: whether it refused the write.
    pub fn took(
        &self,
        (place, name): (usize, &'static str),
        (step, operation): (PluginStep, AdmissionOperation),
        is_rejected: bool,
        took: Duration,
    ) {
        let Some(row) = self.plugins.get(place) else { return };
        let _first = row.name.get_or_init(|| name);
        row.add((step, operation), is_rejected, took);
    }

    /// All plugins together took so long.
    pub fn step_took(
        &self,
        (step, operation): (PluginStep, AdmissionOperation),
        is_rejected: bool,
        took: Duration,
    ) {
        self.steps.add((step, operation), is_rejected, took);
    }

    /// What was counted of steps.
    pub fn steps(&self) -> Vec<PluginCounted> {
        self.steps.counted("")
    }

    /// What was counted of plugins, by name.
    pub fn plugins(&self) -> Vec<PluginCounted> {
        let known = self.plugins.iter().filter_map(|row| Some((row, *row.name.get()?)));
        let mut all: Vec<PluginCounted> = known.flat_map(|(row, name)| row.counted(name)).collect();
        all.sort_by_key(|counted| counted.name);
        all
    }
}

impl PluginRow {
    fn add(&self, (step, operation): (PluginStep, AdmissionOperation), is_rejected: bool, took: Duration) {
        let counts = &self.series[step as usize][operation as usize][usize::from(is_rejected)];
        let seconds = took.as_secs_f64();
        let bucket = PLUGIN_BOUNDS.partition_point(|bound| *bound < seconds);
        counts.buckets[bucket].fetch_add(1, Relaxed);
        counts.nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Those of which there is something.
    fn counted(&self, name: &'static str) -> Vec<PluginCounted> {
        let mut all = Vec::new();
        for (step, by_operation) in STEPS.into_iter().zip(&self.series) {
            for (operation, both) in OPERATIONS.into_iter().zip(by_operation) {
                for (is_rejected, counts) in [false, true].into_iter().zip(both) {
                    let durations = counts.read();
                    if durations.all > 0 {
                        let operation = operation.as_str();
                        all.push(PluginCounted { name, step, operation, is_rejected, durations });
                    }
                }
            }
        }
        all
    }
}

impl Counts {
    fn read(&self) -> Durations<{ PLUGIN_BOUNDS.len() }> {
        let mut durations = Durations::default();
        for (at, bucket) in self.buckets.iter().enumerate() {
            durations.all += bucket.load(Relaxed);
            if let Some(below) = durations.counts.get_mut(at) {
                *below = durations.all;
            }
        }
        durations.seconds = self.nanos.load(Relaxed) as f64 / 1e9;
        durations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_and_steps_are_counted_by_what_came_of_them() {
        let metrics = PluginMetrics::default();
        let create = (PluginStep::Admit, AdmissionOperation::Create);
        metrics.took((3, "Priority"), create, false, Duration::from_millis(5));
        metrics.took((3, "Priority"), create, false, Duration::from_secs(3));
        metrics.took((1, "LimitRanger"), create, true, Duration::from_millis(6));
        metrics.took((PLUGINS_MAX, "Another"), create, true, Duration::ZERO);
        let delete = (PluginStep::Validate, AdmissionOperation::Delete);
        metrics.step_took(delete, false, Duration::from_millis(200));
        let told = |counted: Vec<PluginCounted>| -> Vec<String> {
            let one = |PluginCounted { name, step, operation, is_rejected, durations }: PluginCounted| {
                let Durations { counts, all, seconds } = durations;
                format!("{name} {step} {operation} {is_rejected} {counts:?} {all} {seconds}")
            };
            counted.into_iter().map(one).collect()
        };
        assert_eq!(
            told(metrics.plugins()),
            [
                "LimitRanger admit CREATE true [0, 1, 1, 1, 1, 1] 1 0.006",
                "Priority admit CREATE false [1, 1, 1, 1, 1, 1] 2 3.005",
            ]
        );
        assert_eq!(told(metrics.steps()), [" validate DELETE false [0, 0, 0, 1, 1, 1] 1 0.2"]);
    }
}
