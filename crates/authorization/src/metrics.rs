//! What is counted of decisions, of calls of webhooks, and of configurations, by upstream's names.
//!
//! In: what happened. Out: series. Never: a text; more series than there is a limit of.
//!
//! Source: apiserver v0.36.3 `pkg/authorization/{metrics,cel}`, `plugin/pkg/authorizer/webhook/metrics`,
//! `pkg/server/options/authorizationconfig/metrics`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::SERIES_MAX;

/// Upper bounds of the buckets of calls, in seconds; upstream's.
pub const CALL_BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The same of match conditions.
pub const CONDITION_BOUNDS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// What one authorizer decided: counted without a lock, as each request is.
#[derive(Debug, Default)]
pub struct DecisionCounts {
    allowed: AtomicU64,
    denied: AtomicU64,
}

/// What came of a call of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookCall {
    Canceled,
    Error,
    Success,
    Timeout,
}

/// An authorizer's type and name.
type Named = (&'static str, Arc<str>);

/// See the module's doc.
#[derive(Debug, Default)]
pub struct AuthorizationMetrics {
    // <= SERIES_MAX, as the others. Locked for a few lines.
    decisions: Mutex<BTreeMap<Named, Arc<DecisionCounts>>>,
    counted: Mutex<AuthorizationCounted>,
}

/// What was counted so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuthorizationCounted {
    /// type, name -> allowed, denied
    pub decisions: BTreeMap<(&'static str, Arc<str>), (u64, u64)>,
    /// name, result
    pub calls: BTreeMap<(Arc<str>, WebhookCall), Took<{ CALL_BOUNDS.len() }>>,
    /// name, result of the last call: what nobody was asked about, and counted as no opinion.
    pub open: BTreeMap<(Arc<str>, WebhookCall), u64>,
    /// name
    pub conditions: BTreeMap<Arc<str>, Conditions>,
    /// Of the configuration that is read again and again; none where there is no file.
    pub reloads: Reloads,
}

/// What came of the match conditions of a webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    pub took: Took<{ CONDITION_BOUNDS.len() }>,
    pub errors: u64,
    pub exclusions: u64,
}

/// What came of reading a configuration again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reloads {
    /// How often, and when last in seconds.
    pub succeeded: (u64, f64),
    pub failed: (u64, f64),
    /// Hashes of what this server is called, and of the configuration in force: `sha256:…`. Empty: there is
    /// none.
    pub server: String,
    pub in_force: String,
}

/// How long something took.
#[derive(Clone, Debug, PartialEq)]
pub struct Took<const N: usize> {
    /// By bucket, each with what is below its bound.
    pub counts: [u64; N],
    pub all: u64,
    pub seconds: f64,
}

impl DecisionCounts {
    pub fn allowed(&self) {
        self.allowed.fetch_add(1, Ordering::Relaxed);
    }

    pub fn denied(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }
}

impl WebhookCall {
    pub fn as_str(self) -> &'static str {
        match self {
            WebhookCall::Canceled => "canceled",
            WebhookCall::Error => "error",
            WebhookCall::Success => "success",
            WebhookCall::Timeout => "timeout",
        }
    }
}

impl AuthorizationMetrics {
    /// The counts of an authorizer, the same for each chain that it is in.
    pub fn decisions(&self, kind: &'static str, name: &str) -> Arc<DecisionCounts> {
        let mut all = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, Arc::from(name));
        // Once: for a chain that is made.
        if all.len() >= SERIES_MAX && !all.contains_key(&key) {
            return Arc::default();
        }
        all.entry(key).or_default().clone()
    }

    /// Counts a call.
    pub fn called(&self, name: &Arc<str>, call: WebhookCall, took: Duration) {
        if let Some(took_all) = at(&mut self.lock().calls, (name.clone(), call)) {
            took_all.took(took, &CALL_BOUNDS);
        }
    }

    /// Counts a question that was not answered, and counts as no opinion.
    pub fn failed_open(&self, name: &Arc<str>, call: WebhookCall) {
        if let Some(count) = at(&mut self.lock().open, (name.clone(), call)) {
            *count += 1;
        }
    }

    /// Counts an evaluation of match conditions.
    pub fn conditions(&self, name: &Arc<str>, took: Duration, result: &Result<bool, String>) {
        if let Some(conditions) = at(&mut self.lock().conditions, name.clone()) {
            conditions.took.took(took, &CONDITION_BOUNDS);
            match result {
                Ok(true) => {}
                Ok(false) => conditions.exclusions += 1,
                Err(_) => conditions.errors += 1,
            }
        }
    }

    /// A configuration is in force, from the start on.
    pub fn began(&self, server: String, in_force: String) {
        let mut counted = self.lock();
        (counted.reloads.server, counted.reloads.in_force) = (server, in_force);
    }

    /// A configuration was read again, and is in force: its hash.
    ///
    /// - `at`: seconds.
    pub fn reloaded(&self, in_force: String, at: f64) {
        let reloads = &mut self.lock().reloads;
        reloads.succeeded = (reloads.succeeded.0 + 1, at);
        reloads.in_force = in_force;
    }

    /// The configuration cannot be read or used: what was in force is still.
    pub fn not_reloaded(&self, at: f64) {
        let reloads = &mut self.lock().reloads;
        reloads.failed = (reloads.failed.0 + 1, at);
    }

    /// What was counted so far.
    pub fn counted(&self) -> AuthorizationCounted {
        let mut counted = self.lock().clone();
        let decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |counts: &DecisionCounts| {
            (counts.allowed.load(Ordering::Relaxed), counts.denied.load(Ordering::Relaxed))
        };
        counted.decisions = decisions.iter().map(|(key, counts)| (key.clone(), of(counts))).collect();
        counted
    }

    fn lock(&self) -> MutexGuard<'_, AuthorizationCounted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The series of `key`; none once there are too many.
fn at<K: Ord, V: Default>(series: &mut BTreeMap<K, V>, key: K) -> Option<&mut V> {
    // Once: for a call, in a map.
    if series.len() >= SERIES_MAX && !series.contains_key(&key) {
        return None;
    }
    Some(series.entry(key).or_default())
}

impl<const N: usize> Default for Took<N> {
    fn default() -> Took<N> {
        Took { counts: [0; N], all: 0, seconds: 0.0 }
    }
}

impl<const N: usize> Took<N> {
    fn took(&mut self, took: Duration, bounds: &[f64; N]) {
        let seconds = took.as_secs_f64();
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
    fn each_thing_is_counted_by_what_came_of_it() {
        let (metrics, name): (_, Arc<str>) = (AuthorizationMetrics::default(), "w".into());
        let counts = metrics.decisions("RBAC", "rbac");
        counts.allowed();
        metrics.decisions("RBAC", "rbac").denied();
        metrics.called(&name, WebhookCall::Success, Duration::from_millis(30));
        metrics.failed_open(&name, WebhookCall::Timeout);
        for result in [Ok(true), Ok(false), Err("e".to_owned())] {
            metrics.conditions(&name, Duration::from_millis(2), &result);
        }
        metrics.began("s".to_owned(), "one".to_owned());
        metrics.not_reloaded(1.0);
        metrics.reloaded("two".to_owned(), 2.0);
        let counted = metrics.counted();
        assert_eq!(counted.decisions[&("RBAC", "rbac".into())], (1, 1));
        assert_eq!(
            counted.calls[&(name.clone(), WebhookCall::Success)].counts,
            [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
        );
        assert_eq!(counted.open[&(name.clone(), WebhookCall::Timeout)], 1);
        let conditions = &counted.conditions[&name];
        assert_eq!((conditions.took.all, conditions.errors, conditions.exclusions), (3, 1, 1));
        let Reloads { succeeded, failed, in_force, .. } = counted.reloads;
        assert_eq!((succeeded, failed, &*in_force), ((1, 2.0), (1, 1.0), "two"));
    }

    #[test]
    fn there_are_no_more_series_than_the_limit_says() {
        let metrics = AuthorizationMetrics::default();
        for at in 0..SERIES_MAX + 5 {
            let name: Arc<str> = at.to_string().into();
            metrics.called(&name, WebhookCall::Success, Duration::ZERO);
            metrics.decisions("Webhook", &name).allowed();
        }
        let counted = metrics.counted();
        assert_eq!((counted.calls.len(), counted.decisions.len()), (SERIES_MAX, SERIES_MAX));
    }
}
