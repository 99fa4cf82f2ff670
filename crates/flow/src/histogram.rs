//! Counts by size, and time by size.
//!
//! In: observations. Out: how many, or for how many seconds, were up to each bound. Never: names.

use crate::price::Moment;

/// How many observations were up to each bound.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    // one for each bound, and one for what is above all
    counts: Vec<f64>,
    sum: f64,
}

/// A histogram, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Bound, and what was up to it; the last bound is infinite.
    pub buckets: Vec<(f64, f64)>,
    pub sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Histogram {
        Histogram { bounds, counts: vec![0.0; bounds.len() + 1], sum: 0.0 }
    }

    pub(crate) fn observe(&mut self, value: f64) {
        self.weigh(value, 1.0);
    }

    fn weigh(&mut self, value: f64, weight: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.counts[at] += weight;
        self.sum += value * weight;
    }

    pub(crate) fn shown(&self) -> Distribution {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let upto = self.counts.iter().scan(0.0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Distribution { buckets: bounds.zip(upto).collect(), sum: self.sum }
    }
}

/// For how many nanoseconds a ratio was up to each bound.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    histogram: Histogram,
    ratio: f64,
    since: Moment,
}

impl Timed {
    pub(crate) fn new(bounds: &'static [f64], now: Moment) -> Timed {
        Timed { histogram: Histogram::new(bounds), ratio: 0.0, since: now }
    }

    /// It is `part` of `whole` from now on.
    pub(crate) fn set(&mut self, part: u64, whole: u64, now: Moment) {
        let passed = now.saturating_sub(self.since).as_nanos() as f64;
        self.since = self.since.max(now);
        self.histogram.weigh(self.ratio, passed);
        self.ratio = part as f64 / whole.max(1) as f64;
    }

    pub(crate) fn shown(&self) -> Distribution {
        self.histogram.shown()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_counted_is_time_where_it_is_a_ratio() {
        let mut timed = Timed::new(&[0.5, 1.0], Duration::ZERO);
        timed.set(1, 2, Duration::from_nanos(10));
        timed.set(2, 2, Duration::from_nanos(30));
        timed.set(3, 2, Duration::from_nanos(35));
        timed.set(0, 2, Duration::from_nanos(36));
        let shown = timed.shown();
        assert_eq!(shown.buckets, [(0.5, 30.0), (1.0, 35.0), (f64::INFINITY, 36.0)]);
        assert_eq!(shown.sum, 10.0 + 5.0 + 1.5);
    }
}
