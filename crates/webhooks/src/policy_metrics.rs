//! What is counted of admission policies, by upstream's names.
//!
//! In: what came of an expression. Out: series. Never: a text of a policy but its name; more series than
//! there is a limit of; what a policy has nothing against, which upstream counts of mutations alone.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/{validating,mutating}/metrics`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::metrics::{Durations, at};

/// Upper bounds of the buckets, in seconds; upstream's.
pub const POLICY_BOUNDS: [f64; 5] = [0.0000005, 0.001, 0.01, 0.1, 1.0];

/// See the module's doc.
#[derive(Default)]
pub struct PolicyMetrics(Mutex<PoliciesCounted>);

/// What was counted so far. <= SERIES_MAX each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoliciesCounted {
    pub validating: BTreeMap<Validation, PolicyDurations>,
    /// policy, binding, type of error
    pub mutating: BTreeMap<(Arc<str>, Arc<str>, &'static str), PolicyDurations>,
}

/// policy, binding, type of error, what was done
type Validation = (Arc<str>, Arc<str>, &'static str, &'static str);

pub type PolicyDurations = Durations<{ POLICY_BOUNDS.len() }>;

impl PolicyMetrics {
    /// Counts a validation that failed, as `message` says, and what was done for it.
    pub fn validated(
        &self,
        (policy, binding): (&Arc<str>, &Arc<str>),
        message: &str,
        action: &'static str,
        took: Duration,
    ) {
        let key = (policy.clone(), binding.clone(), error(message), action);
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(durations) = at(&mut counted.validating, key) {
            durations.took(took.as_secs_f64(), &POLICY_BOUNDS);
        }
    }

    /// Counts a mutation, and why it came to nothing.
    pub fn mutated(&self, (policy, binding): (&Arc<str>, &Arc<str>), why: Option<&str>, took: Duration) {
        let key = (policy.clone(), binding.clone(), why.map_or("no_error", error));
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(durations) = at(&mut counted.mutating, key) {
            durations.took(took.as_secs_f64(), &POLICY_BOUNDS);
        }
    }

    /// What was counted so far.
    pub fn counted(&self) -> PoliciesCounted {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Upstream goes by the words, too.
fn error(message: &str) -> &'static str {
    if message.starts_with("compilation") {
        return "compile_error";
    }
    match message.contains("running out of cost budget") {
        true => "out_of_budget",
        false => "invalid_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_counted_by_what_went_wrong_and_what_was_done() {
        let (metrics, policy, binding): (_, Arc<str>, Arc<str>) =
            (PolicyMetrics::default(), "p".into(), "b".into());
        let (of, took) = ((&policy, &binding), Duration::from_millis(2));
        metrics.validated(of, "failed expression: false", "deny", took);
        metrics.validated(of, "failed expression: false", "deny", took);
        metrics.validated(of, "compilation failed: x", "warn", took);
        metrics.mutated(of, None, took);
        metrics.mutated(of, Some("mutation failed due to running out of cost budget"), took);
        let counted = metrics.counted();
        let key = |error, action| (policy.clone(), binding.clone(), error, action);
        assert_eq!(counted.validating[&key("invalid_error", "deny")].counts, [0, 0, 2, 2, 2]);
        assert_eq!(counted.validating[&key("compile_error", "warn")].all, 1);
        let errors: Vec<&str> = counted.mutating.keys().map(|(.., error)| *error).collect();
        assert_eq!(errors, ["no_error", "out_of_budget"]);
    }
}
