//! How values are spread, as Prometheus has it.
//!
//! In: values. Out: how many fell below each bound, and their sum.

use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds of buckets, as they are written and as numbers.
pub type Bounds = &'static [(&'static str, f64)];

/// How often values fell below each bound. Not cumulative until it is written.
#[derive(Debug)]
pub struct Histogram {
    pub bounds: Bounds,
    buckets: Box<[AtomicU64]>,
    // Sum of the values, in millionths.
    sum: AtomicU64,
}

impl Histogram {
    pub fn new(bounds: Bounds) -> Histogram {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, buckets, sum: AtomicU64::new(0) }
    }

    pub fn observe(&self, value: f64) {
        self.observe_all([value]);
    }

    /// The same for values that are mostly alike: all threads write here, and this does it once for those of
    /// a bucket that come one behind the other.
    pub fn observe_all(&self, values: impl IntoIterator<Item = f64>) {
        let place = |value: f64| self.bounds.partition_point(|(_, bound)| *bound < value);
        let mut values = values.into_iter().map(|value| (place(value), (value * 1e6) as u64)).peekable();
        let mut sum = 0;
        while let Some((place, millionths)) = values.next() {
            let mut count = 1;
            sum += millionths;
            while let Some((_, millionths)) = values.next_if(|(next, _)| *next == place) {
                count += 1;
                sum += millionths;
            }
            self.buckets[place].fetch_add(count, Ordering::Relaxed);
        }
        self.sum.fetch_add(sum, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// Count of each bucket and those below, the last one for all; and the sum.
    pub fn read(&self) -> (Vec<u64>, f64) {
        let mut below = 0;
        let counts = self.buckets.iter().map(|bucket| {
            below += bucket.load(Ordering::Relaxed);
            below
        });
        (counts.collect(), self.sum.load(Ordering::Relaxed) as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_buckets() {
        let histogram = Histogram::new(&[("1", 1.0), ("2.5", 2.5)]);
        for value in [0.5, 1.0, 1.5, 9.0] {
            histogram.observe(value);
        }
        assert_eq!((histogram.read(), histogram.count()), ((vec![2, 3, 4], 12.0), 4));
        histogram.observe_all([0.5, 1.0, 1.5, 9.0, 9.0, 0.5]);
        histogram.observe_all([]);
        assert_eq!((histogram.read(), histogram.count()), ((vec![5, 7, 10], 33.5), 10));
    }
}
