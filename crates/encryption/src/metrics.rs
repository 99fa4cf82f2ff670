//! What is counted of encryption, by upstream's names.
//!
//! In: what was done. Out: series, for whoever writes them. Never: a text; more series than there is a limit
//! of; the name of a key, but its hash.
//!
//! Source: apiserver v0.36.3 `storage/value/metrics.go`, `encrypt/envelope/metrics/metrics.go`,
//! `server/options/encryptionconfig/metrics/metrics.go`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use forebay_grpc::CallError;
use forebay_rt::{Clock, Duration};

use crate::failed::{SealError, call_status};
use crate::hash::hashed;
use crate::limits;

/// Which way a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    FromStorage,
    ToStorage,
}

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Direction::FromStorage => "from_storage",
            Direction::ToStorage => "to_storage",
        }
    }
}

/// Upper bounds of buckets, in seconds: from `first` on, each twice the one before.
const fn bounds<const N: usize>(first: f64) -> [f64; N] {
    let (mut all, mut at) = ([first; N], 1);
    while at < N {
        all[at] = all[at - 1] * 2.0;
        at += 1;
    }
    all
}

pub const TRANSFORMATION_BOUNDS: [f64; 25] = bounds(5e-6);
pub const GENERATION_BOUNDS: [f64; 14] = bounds(5e-6);
pub const CALL_BOUNDS: [f64; 20] = bounds(0.0001);

/// How long something took.
#[derive(Clone, Debug, PartialEq)]
pub struct Times<const N: usize> {
    /// By bucket, each with what is below its bound.
    pub counts: [u64; N],
    pub all: u64,
    pub seconds: f64,
}

impl<const N: usize> Default for Times<N> {
    fn default() -> Times<N> {
        Times { counts: [0; N], all: 0, seconds: 0.0 }
    }
}

impl<const N: usize> Times<N> {
    fn took(&mut self, took: Duration, bounds: &[f64; N]) {
        let seconds = took.as_secs_f64();
        let first = bounds.partition_point(|bound| *bound < seconds);
        self.counts[first..].iter_mut().for_each(|count| *count += 1);
        self.all += 1;
        self.seconds += seconds;
    }
}

/// A plugin's key as it was used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyUse {
    pub count: u64,
    pub last_unix_ms: u64,
}

/// resource, direction, prefix, status
type Transformation = (Arc<str>, Direction, Arc<str>, &'static str);

/// What was counted so far. Each map has at most as many series as there is a limit of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncryptionCounted {
    pub transformations: BTreeMap<Transformation, u64>,
    /// direction, prefix
    pub times: BTreeMap<(Direction, Arc<str>), Times<25>>,
    pub cache_misses: u64,
    pub generations: Times<14>,
    pub generation_failures: u64,
    /// provider, method, status
    pub calls: BTreeMap<(Arc<str>, &'static str, &'static str), Times<20>>,
    /// direction, provider, hash of the key's name
    pub keys: BTreeMap<(Direction, Arc<str>, Arc<str>), KeyUse>,
    /// provider, hash of the key's name -> when it was told, in unix ms
    pub status_keys: BTreeMap<(Arc<str>, Arc<str>), u64>,
    /// provider, what is wrong
    pub invalid_keys: BTreeMap<(Arc<str>, &'static str), u64>,
    /// provider
    pub data_keys: BTreeMap<Arc<str>, usize>,
    /// Whether it was taken -> how often, and when last in unix ms.
    pub reloads: BTreeMap<bool, KeyUse>,
    /// Of the configuration in force.
    pub config_hash: String,
    /// Whose all of this is.
    pub server_hash: String,
    key_order: VecDeque<(Direction, Arc<str>, Arc<str>)>,
    status_order: VecDeque<(Arc<str>, Arc<str>)>,
}

/// See the module's doc.
#[derive(Default)]
pub struct EncryptionMetrics {
    // Locked for a few lines.
    series: Mutex<EncryptionCounted>,
    server: OnceLock<String>,
}

/// What is counted of the values of one resource.
pub struct Counting<'a> {
    pub metrics: &'a EncryptionMetrics,
    pub clock: &'a Clock,
    pub resource: Arc<str>,
}

impl Counting<'_> {
    /// Does `work`, and counts it.
    ///
    /// # Errors
    /// Those of the work.
    pub fn timed<T>(
        &self,
        direction: Direction,
        prefix: &Arc<str>,
        work: impl FnOnce() -> Result<T, SealError>,
    ) -> Result<T, SealError> {
        let began = self.clock.now();
        let done = work();
        match &done {
            Ok(_) => self.count(direction, prefix, call_status(None), Some(self.clock.now() - began)),
            Err(failed) => self.failed(direction, prefix, failed),
        }
        done
    }

    pub fn failed(&self, direction: Direction, prefix: &Arc<str>, failed: &SealError) {
        self.count(direction, prefix, failed.status, None);
    }

    fn count(&self, direction: Direction, prefix: &Arc<str>, status: &'static str, took: Option<Duration>) {
        let mut series = self.metrics.series();
        let key = (self.resource.clone(), direction, prefix.clone(), status);
        if let Some(count) = at(&mut series.transformations, key) {
            *count += 1;
        }
        if let Some(took) = took
            && let Some(times) = at(&mut series.times, (direction, prefix.clone()))
        {
            times.took(took, &TRANSFORMATION_BOUNDS);
        }
    }
}

impl EncryptionMetrics {
    /// Whose the counts are; the first one counts.
    pub fn belong_to(&self, server: &str) {
        let _first = self.server.set(hashed(server));
    }

    pub fn missed(&self) {
        self.series().cache_misses += 1;
    }

    pub fn generated(&self, is_made: bool, took: Duration) {
        let mut series = self.series();
        match is_made {
            true => series.generations.took(took, &GENERATION_BOUNDS),
            false => series.generation_failures += 1,
        }
    }

    pub fn called(
        &self,
        provider: &Arc<str>,
        method: &'static str,
        error: Option<&CallError>,
        took: Duration,
    ) {
        let key = (provider.clone(), method, call_status(error));
        if let Some(times) = at(&mut self.series().calls, key) {
            times.took(took, &CALL_BOUNDS);
        }
    }

    /// - `key_hash`: as [`hashed`] has it.
    pub fn key_id_used(&self, direction: Direction, provider: &Arc<str>, key_hash: &Arc<str>, unix_ms: u64) {
        let key = (direction, provider.clone(), key_hash.clone());
        let mut series = self.series();
        let EncryptionCounted { keys, key_order, .. } = &mut *series;
        if let Some(used) = keys.get_mut(&key) {
            *used = KeyUse { count: used.count + 1, last_unix_ms: unix_ms };
            return;
        }
        keys.insert(key.clone(), KeyUse { count: 1, last_unix_ms: unix_ms });
        key_order.push_back(key);
        if key_order.len() > limits::KEY_IDS_MAX
            && let Some(first) = key_order.pop_front()
        {
            keys.remove(&first);
        }
    }

    pub fn key_id_of_status(&self, provider: &Arc<str>, key_hash: &str, unix_ms: u64) {
        let key: (Arc<str>, Arc<str>) = (provider.clone(), key_hash.into());
        let mut series = self.series();
        let EncryptionCounted { status_keys, status_order, .. } = &mut *series;
        if status_keys.insert(key.clone(), unix_ms).is_none() {
            status_order.push_back(key);
            if status_order.len() > limits::KEY_IDS_MAX
                && let Some(first) = status_order.pop_front()
            {
                status_keys.remove(&first);
            }
        }
    }

    pub fn invalid_key_id(&self, provider: &Arc<str>, sort: &'static str) {
        if let Some(count) = at(&mut self.series().invalid_keys, (provider.clone(), sort)) {
            *count += 1;
        }
    }

    pub fn data_keys(&self, provider: &Arc<str>, count: usize) {
        if let Some(known) = at(&mut self.series().data_keys, provider.clone()) {
            *known = count;
        }
    }

    pub fn reloaded(&self, is_taken: bool, unix_ms: u64) {
        let mut series = self.series();
        let reloads = series.reloads.entry(is_taken).or_default();
        *reloads = KeyUse { count: reloads.count + 1, last_unix_ms: unix_ms };
    }

    pub fn in_force(&self, config_hash: &str) {
        config_hash.clone_into(&mut self.series().config_hash);
    }

    /// What was counted so far.
    pub fn counted(&self) -> EncryptionCounted {
        let server_hash = self.server.get().cloned().unwrap_or_default();
        EncryptionCounted { server_hash, ..self.series().clone() }
    }

    fn series(&self) -> MutexGuard<'_, EncryptionCounted> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The series of `key`, unless there are too many.
fn at<K: Ord, V: Default>(map: &mut BTreeMap<K, V>, key: K) -> Option<&mut V> {
    if map.len() >= limits::SERIES_MAX && !map.contains_key(&key) {
        return None;
    }
    Some(map.entry(key).or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_counted_by_resource_and_prefix() {
        let (metrics, clock) = (EncryptionMetrics::default(), Clock::system());
        let counting = Counting { metrics: &metrics, clock: &clock, resource: "secrets".into() };
        let prefix: Arc<str> = "k8s:enc:aesgcm:v1:".into();
        counting.timed(Direction::ToStorage, &prefix, || Ok(())).expect("done");
        let failed: Result<(), _> =
            counting.timed(Direction::FromStorage, &prefix, || Err("not that key".into()));
        assert!(failed.is_err());
        let counted = metrics.counted();
        let told: Vec<_> = counted
            .transformations
            .iter()
            .map(|((resource, direction, prefix, status), count)| {
                format!("{resource} {} {prefix} {status} {count}", direction.name())
            })
            .collect();
        assert_eq!(
            told,
            [
                "secrets from_storage k8s:enc:aesgcm:v1: unknown-non-grpc 1",
                "secrets to_storage k8s:enc:aesgcm:v1: OK 1"
            ]
        );
        assert_eq!(counted.times.len(), 1, "only of what was done");
    }

    #[test]
    fn series_and_keys_are_bounded() {
        let metrics = EncryptionMetrics::default();
        let provider: Arc<str> = "plugin".into();
        for number in 0..=limits::KEY_IDS_MAX {
            let hash: Arc<str> = number.to_string().into();
            metrics.key_id_used(Direction::ToStorage, &provider, &hash, 1);
            metrics.key_id_of_status(&provider, &hash, 1);
        }
        let clock = Clock::system();
        for number in 0..=limits::SERIES_MAX {
            let resource = number.to_string().into();
            let counting = Counting { metrics: &metrics, clock: &clock, resource };
            counting.failed(Direction::FromStorage, &"".into(), &SealError::new("no"));
        }
        let counted = metrics.counted();
        assert_eq!(counted.keys.len(), limits::KEY_IDS_MAX);
        assert_eq!(counted.status_keys.len(), limits::KEY_IDS_MAX);
        assert_eq!(counted.transformations.len(), limits::SERIES_MAX);
    }

    #[test]
    fn buckets_count_what_is_below_them() {
        let mut times = Times::<20>::default();
        times.took(Duration::from_micros(150), &CALL_BOUNDS);
        times.took(Duration::from_secs(100), &CALL_BOUNDS);
        assert_eq!(times.counts[..3], [0, 1, 1]);
        assert_eq!((times.counts[19], times.all), (1, 2));
        assert!((CALL_BOUNDS[19] - 52.4288).abs() < 1e-9);
    }
}
