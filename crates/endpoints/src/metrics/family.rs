//! Numbers that only grow, by label.
//!
//! In: what happened. Out: series to write out. Every family has a limit of series; what comes beyond it is
//! counted under the family's `other`.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

use crate::limits::METRIC_SERIES_MAX;

/// Series by label. Owner: whoever counts; the map is only locked to find a series.
#[derive(Debug)]
pub struct Family<K, V> {
    series: RwLock<HashMap<K, Arc<V>>>,
    /// Counts what is beyond the limit.
    other: K,
    make: fn() -> V,
}

impl<K: Hash + Eq + Clone + Ord, V> Family<K, V> {
    pub fn new(other: K, make: fn() -> V) -> Family<K, V> {
        Family { series: RwLock::new(HashMap::new()), other, make }
    }

    /// The series of `labels`.
    pub fn of(&self, labels: &K) -> Arc<V> {
        if let Some(known) = self.series.read().unwrap_or_else(PoisonError::into_inner).get(labels) {
            return known.clone();
        }
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let full = series.len() >= METRIC_SERIES_MAX && !series.contains_key(labels);
        let labels = if full { &self.other } else { labels };
        series.entry(labels.clone()).or_insert_with(|| Arc::new((self.make)())).clone()
    }

    /// Every series, in order of its labels.
    pub fn read(&self) -> Vec<(K, Arc<V>)> {
        let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = series.iter().map(|(labels, value)| (labels.clone(), value.clone())).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}

#[cfg(test)]
mod tests {
    use forebay_transport::Counter;

    use super::*;

    #[test]
    fn series_beyond_the_limit_are_counted_together() {
        let family = Family::new(u32::MAX, Counter::default);
        for label in 0..METRIC_SERIES_MAX as u32 + 10 {
            family.of(&label).add(1);
        }
        family.of(&0).add(1);
        let read = family.read();
        assert_eq!(read.len(), METRIC_SERIES_MAX + 1);
        assert_eq!(read[0].1.get(), 2);
        assert_eq!(read.last().map(|(label, count)| (*label, count.get())), Some((u32::MAX, 10)));
    }
}
