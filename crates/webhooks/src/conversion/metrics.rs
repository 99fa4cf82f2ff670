//! What is counted of conversions, by upstream's names.
//!
//! In: what came of each. Out: series. Never: more of them than there is a limit of.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/conversion/metrics.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::conversion::FailureSort;
use crate::limits::SERIES_MAX;

/// Upper bounds of `apiserver_crd_conversion_webhook_duration_seconds`.
#[rustfmt::skip]
pub const CRD_BOUNDS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];

/// Upper bounds of `apiserver_conversion_webhook_duration_seconds`.
pub const REQUEST_BOUNDS: [f64; 15] =
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];

/// See the module's doc.
#[derive(Default)]
pub struct ConversionMetrics {
    // Locked for a few lines.
    series: Mutex<ConversionCounted>,
}

/// What was counted so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversionCounted {
    /// <= SERIES_MAX.
    pub crds: BTreeMap<ConversionKey, ConversionTimes>,
    /// By what went wrong.
    pub requests: BTreeMap<Option<FailureSort>, ConversionTimes>,
}

/// CRD, from which version, to which, succeeded.
pub type ConversionKey = (Arc<str>, Arc<str>, Arc<str>, bool);

/// How long calls took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversionTimes {
    /// By bucket, each with what is below it; the last has all.
    pub counts: [u64; 16],
    pub seconds: f64,
}

impl ConversionMetrics {
    /// Counts a call.
    pub fn called(
        &self,
        crd: &Arc<str>,
        (from, to): (&str, &str),
        took: Duration,
        failure: Option<FailureSort>,
    ) {
        let seconds = took.as_secs_f64();
        let mut counted = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        counted.requests.entry(failure).or_default().took(seconds, &REQUEST_BOUNDS);
        let key = (crd.clone(), from.into(), to.into(), failure.is_none());
        // Once: for a call, in a map.
        if counted.crds.len() < SERIES_MAX || counted.crds.contains_key(&key) {
            counted.crds.entry(key).or_default().took(seconds, &CRD_BOUNDS);
        }
    }

    /// What was counted so far.
    pub fn counted(&self) -> ConversionCounted {
        self.series.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ConversionTimes {
    fn took(&mut self, seconds: f64, bounds: &[f64; 15]) {
        self.seconds += seconds;
        let bounds = bounds.iter().copied().chain([f64::INFINITY]);
        for (count, _) in self.counts.iter_mut().zip(bounds).filter(|(_, bound)| seconds <= *bound) {
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_crd_and_by_what_went_wrong() {
        let (metrics, crd): (_, Arc<str>) = (ConversionMetrics::default(), "tabs.g.io".into());
        metrics.called(&crd, ("v1", "v2"), Duration::from_millis(3), None);
        metrics.called(&crd, ("v1", "v2"), Duration::from_secs(90), Some(FailureSort::Call));
        let counted = metrics.counted();
        let times = &counted.crds[&(crd.clone(), "v1".into(), "v2".into(), true)];
        assert_eq!((times.counts[1], times.counts[2], times.counts[15]), (0, 1, 1));
        assert!(counted.crds.contains_key(&(crd, "v1".into(), "v2".into(), false)));
        assert_eq!(counted.requests[&None].counts[0], 1);
        let failed = &counted.requests[&Some(FailureSort::Call)];
        assert_eq!((failed.counts[14], failed.counts[15]), (0, 1));
    }
}
