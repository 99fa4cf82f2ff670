//! What is counted of calls, by upstream's names.
//!
//! In: what came of each call. Out: series. Never: a text; more series than there is a limit of.
//!
//! Source: apiserver v0.36.3 `pkg/admission/metrics/metrics.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use forebay_pod_security::SecurityMetrics;
use forebay_policy::AdmissionOperation;

use crate::configuration::WebhookSort;
use crate::conversion::ConversionMetrics;
use crate::limits::SERIES_MAX;
use crate::plugin_metrics::PluginMetrics;
use crate::policy_metrics::PolicyMetrics;

/// Upper bounds of the buckets, in seconds; upstream's.
pub const BOUNDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];

/// Codes above are told as this.
const CODE_MAX: u16 = 600;

/// Upper bounds of the buckets of match conditions, in seconds; upstream's.
pub const CONDITION_BOUNDS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Passed,
    /// It refused, with the code of its refusal.
    Refused(u16),
    /// It could not be asked, and that counts; with the code of why.
    Failed(u16),
    /// The same, and it does not count.
    FailedOpen(u16),
    /// What it wants cannot be done.
    Impossible,
}

/// See the module's doc.
#[derive(Default)]
pub struct WebhookMetrics {
    // Locked for a few lines.
    series: Mutex<Counted>,
    /// Of conversions of custom resources.
    pub conversions: ConversionMetrics,
    /// Of plugins, of which webhooks are one.
    pub plugins: PluginMetrics,
    /// Of admission policies, which stand beside webhooks.
    pub policies: PolicyMetrics,
    /// Of pod security, whose plugin counts more than its time.
    pub pod_security: SecurityMetrics,
}

/// What was counted so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// name, type, operation, rejected. <= SERIES_MAX, as the others.
    pub durations: BTreeMap<(Arc<str>, &'static str, &'static str, bool), Durations>,
    /// name, type, operation, code, rejected
    pub requests: BTreeMap<(Arc<str>, &'static str, &'static str, u16, bool), u64>,
    /// name, type, operation, type of error, code
    pub rejections: BTreeMap<(Arc<str>, &'static str, &'static str, &'static str, u16), u64>,
    /// name, type
    pub open: BTreeMap<(Arc<str>, &'static str), u64>,
    /// name, kind, type, operation
    pub conditions: BTreeMap<(Arc<str>, &'static str, &'static str, &'static str), Conditions>,
}

/// Whose match conditions they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionsOf {
    Webhook(WebhookSort),
    Policy,
}

/// What came of the match conditions of one webhook, or of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    pub took: Durations<{ CONDITION_BOUNDS.len() }>,
    pub errors: u64,
}

/// How long calls took, or the conditions of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations<const N: usize = { BOUNDS.len() }> {
    /// By bucket, each with what is below its bound.
    pub counts: [u64; N],
    pub all: u64,
    pub seconds: f64,
}

impl WebhookMetrics {
    /// Counts a call.
    pub fn called(
        &self,
        name: &Arc<str>,
        sort: WebhookSort,
        operation: AdmissionOperation,
        took: Duration,
        outcome: CallOutcome,
    ) {
        let step = step(sort);
        let (operation, name) = (operation.as_str(), || name.clone());
        let (number, error) = match outcome {
            CallOutcome::Passed => (200, None),
            CallOutcome::Refused(number) => (number, Some("no_error")),
            CallOutcome::Failed(number) => (number, Some("calling_webhook_error")),
            CallOutcome::FailedOpen(number) => (number, None),
            CallOutcome::Impossible => (0, Some("apiserver_internal_error")),
        };
        let number = number.min(CODE_MAX);
        let mut counted = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let is_rejected = error.is_some();
        if let Some(durations) = at(&mut counted.durations, (name(), step, operation, is_rejected)) {
            durations.took(took.as_secs_f64(), &BOUNDS);
        }
        if let Some(count) = at(&mut counted.requests, (name(), step, operation, number, is_rejected)) {
            *count += 1;
        }
        if let Some(error) = error
            && let Some(count) = at(&mut counted.rejections, (name(), step, operation, error, number))
        {
            *count += 1;
        }
        if matches!(outcome, CallOutcome::FailedOpen(_))
            && let Some(count) = at(&mut counted.open, (name(), step))
        {
            *count += 1;
        }
    }

    /// Counts an evaluation of match conditions. What they exclude is not counted, as upstream counts it
    /// nowhere, though it has a name for it.
    ///
    /// - `errors`: conditions that could not be evaluated.
    pub fn conditions(
        &self,
        (name, of): (&Arc<str>, ConditionsOf),
        operation: AdmissionOperation,
        took: Duration,
        errors: u64,
    ) {
        let (kind, step) = match of {
            ConditionsOf::Webhook(sort) => ("webhook", step(sort)),
            // Of either kind upstream says this.
            ConditionsOf::Policy => ("policy", "validate"),
        };
        let key = (name.clone(), kind, step, operation.as_str());
        let mut counted = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(conditions) = at(&mut counted.conditions, key) {
            conditions.took.took(took.as_secs_f64(), &CONDITION_BOUNDS);
            conditions.errors += errors;
        }
    }

    /// What was counted so far.
    pub fn counted(&self) -> Counted {
        self.series.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn step(sort: WebhookSort) -> &'static str {
    match sort {
        WebhookSort::Mutating => "admit",
        WebhookSort::Validating => "validating",
    }
}

/// The series of `key`; none once there are too many.
pub(crate) fn at<K: Ord, V: Default>(series: &mut BTreeMap<K, V>, key: K) -> Option<&mut V> {
    // Once: for a call, in a map.
    if series.len() >= SERIES_MAX && !series.contains_key(&key) {
        return None;
    }
    Some(series.entry(key).or_default())
}

impl<const N: usize> Default for Durations<N> {
    fn default() -> Durations<N> {
        Durations { counts: [0; N], all: 0, seconds: 0.0 }
    }
}

impl<const N: usize> Durations<N> {
    pub(crate) fn took(&mut self, seconds: f64, bounds: &[f64; N]) {
        self.seconds += seconds;
        self.all += 1;
        for (count, _) in self.counts.iter_mut().zip(bounds).filter(|(_, bound)| seconds <= **bound) {
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_counted_by_what_came_of_it() {
        let (metrics, name): (_, Arc<str>) = (WebhookMetrics::default(), "w".into());
        let count = |outcome| {
            let took = Duration::from_millis(30);
            metrics.called(&name, WebhookSort::Validating, AdmissionOperation::Create, took, outcome);
        };
        count(CallOutcome::Passed);
        count(CallOutcome::Refused(999));
        count(CallOutcome::FailedOpen(503));
        let counted = metrics.counted();
        let durations = &counted.durations[&(name.clone(), "validating", "CREATE", false)];
        assert_eq!((durations.counts, durations.all), ([0, 0, 2, 2, 2, 2, 2, 2], 2));
        assert_eq!(counted.requests[&(name.clone(), "validating", "CREATE", 600, true)], 1);
        assert_eq!(counted.rejections[&(name.clone(), "validating", "CREATE", "no_error", 600)], 1);
        assert_eq!(counted.open[&(name, "validating")], 1);
    }

    #[test]
    fn match_conditions_are_counted_by_what_came_of_them() {
        let (metrics, name): (_, Arc<str>) = (WebhookMetrics::default(), "w".into());
        for errors in [0, 0, 2] {
            let took = Duration::from_millis(2);
            let of = ConditionsOf::Webhook(WebhookSort::Validating);
            metrics.conditions((&name, of), AdmissionOperation::Update, took, errors);
            metrics.conditions((&name, ConditionsOf::Policy), AdmissionOperation::Connect, took, errors);
        }
        let counted = metrics.counted();
        assert_eq!(counted.conditions[&(name.clone(), "policy", "validate", "CONNECT")].errors, 2);
        let conditions = &counted.conditions[&(name, "webhook", "validating", "UPDATE")];
        assert_eq!((conditions.errors, conditions.took.all), (2, 3));
        assert_eq!(conditions.took.counts, [0, 3, 3, 3, 3, 3, 3]);
    }

    #[test]
    fn there_are_no_more_series_than_the_limit_says() {
        let metrics = WebhookMetrics::default();
        for n in 0..SERIES_MAX + 5 {
            let name: Arc<str> = n.to_string().into();
            metrics.called(
                &name,
                WebhookSort::Mutating,
                AdmissionOperation::Update,
                Duration::ZERO,
                CallOutcome::Passed,
            );
        }
        assert_eq!(metrics.counted().requests.len(), SERIES_MAX);
    }
}
